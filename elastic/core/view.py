"""A job at one moment, as one frozen value: what every thread but the driver's own loop may see."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from elastic.core.hand_over import MigrationView
from elastic.core.ids import NO_BATCH, Batch, Epoch, Task, UnitId
from elastic.core.nodes import FailedStarts, NodeView
from elastic.core.recoveries import Recovery
from elastic.core.rekeying import RekeyingView
from elastic.core.stage_costs import NodeCosts
from elastic.core.steps import Position
from elastic.routing import Routing
from storage.state import BatchTime, Manifest, SourceBatch


@dataclass(frozen=True)
class JobView:
    """Published by the driver's loop after each event; `handled` is the number of the newest event it includes."""

    manifest: Manifest
    newest: Position  # the newest committed step
    published_batch: Batch
    pending_batches: int  # committed and not published
    is_complete: bool  # no batch has rounds to come: the next one may be committed
    routing: Routing  # as committed
    route: Routing  # where senders bring rows now
    tasks: Mapping[str, tuple[Task, ...]]  # by the node that owns them
    nodes: tuple[NodeView, ...]
    standbys: Mapping[str, tuple[UnitId, ...]] = field(default_factory=dict)  # that could take over now, by node
    migration: MigrationView | None = None
    is_moving: bool = False  # a migration is under way and not paused
    rekeying: RekeyingView | None = None
    rekeying_is_due: bool = False  # the batch in flight or the next one moves keys
    awaits_groupings: bool = False  # the batch in flight is about to commit other groupings
    snapshots_ended: int = 0
    losses: int = 0
    recoveries: tuple[Recovery, ...] = ()
    failed_starts: Mapping[str, FailedStarts] = field(default_factory=dict)
    deaths: Mapping[str, Mapping[Position, int]] = field(default_factory=dict)  # by node and step
    handled: int = 0
    # When nodes will be done with what they have, by the driver's clock, if that is estimated.
    work_ends: Mapping[str, float] = field(default_factory=dict)
    spares: int = 0  # processes that wait for the name of a node
    standbys_without_node: int = 0  # of each unit: so many of those asked for have no place, on other nodes
    regrouped_batch: Batch = NO_BATCH  # no keys moved in a later one: a unit has its keys when it has completed it

    def __repr__(self) -> str:
        """One line; its fields have everything."""
        return (
            f"JobView(nodes={len(self.nodes)}, epoch={self.epoch}, batch={self.newest_batch}, "
            f"published={self.published_batch}, pending={self.pending_batches}, losses={self.losses})"
        )

    @property
    def epoch(self) -> Epoch:
        return Epoch(self.manifest.epoch)

    @property
    def newest_batch(self) -> Batch:
        return self.newest.batch

    @property
    def saved_batch(self) -> Batch:
        """The newest batch that the committed states of all units include."""
        return Batch(self.manifest.low_water_mark)

    @property
    def latest_time(self) -> BatchTime | None:
        """The clocks of the newest committed batch; None before the first."""
        return self.manifest.latest_time

    @property
    def source(self) -> SourceBatch:
        """The newest committed batch of the source.

        Version 0.1 did not store it: its batches had the numbers of the source.
        """
        return self.manifest.source or SourceBatch(self.newest.batch)

    @property
    def is_idle(self) -> bool:
        """Whether the results of every committed batch are published."""
        return self.pending_batches == 0

    @property
    def serving(self) -> frozenset[str]:
        """The nodes that have their units."""
        return frozenset(node.name for node in self.nodes if node.serving)

    def node(self, name: str) -> NodeView | None:
        return next((node for node in self.nodes if node.name == name), None)

    def tasks_on(self, node: str) -> tuple[Task, ...]:
        """Return the tasks that a node owns; while they move, they belong to the target once it has to install them."""
        return self.tasks.get(node, ())

    def costs(self) -> tuple[NodeCosts, ...]:
        """Return what the nodes measured of shuffled stages."""
        beats = ((node.name, node.heartbeat) for node in self.nodes)
        return tuple(NodeCosts(name, beat.costs) for name, beat in beats if beat is not None and beat.costs)

    def addresses(self) -> dict[str, str]:
        """Return the addresses of the nodes that have their units."""
        return {node.name: node.address for node in self.nodes if node.serving}

    def next_timer_ms(self) -> int | None:
        """Return when the earliest processing-time timer is due, as reported by nodes that applied the newest batch."""
        heartbeats = [node.heartbeat for node in self.nodes if node.heartbeat is not None]
        due = [
            heartbeat.next_timer_ms
            for heartbeat in heartbeats
            if heartbeat.done_batch >= self.newest_batch and heartbeat.next_timer_ms is not None
        ]
        return min(due, default=None)

    def next_event_timers(self) -> list[tuple[int, int]]:
        """Return pairs of a stage and a time of its next event-time timers, as nodes with the newest batch report."""
        heartbeats = [node.heartbeat for node in self.nodes if node.heartbeat is not None]
        return [
            timer
            for heartbeat in heartbeats
            if heartbeat.done_batch >= self.newest_batch
            for timer in heartbeat.next_event_timers.items()
        ]
