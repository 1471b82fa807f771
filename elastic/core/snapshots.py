"""The snapshot under way: which node's turn it is, which states arrived, and when they may replace the log."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from elastic.core import commands
from elastic.core.commands import Command
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import SnapshotTaken, UnchangedUnit
from storage.state import StateRef, UnitStates

_TURNS = 8  # an eighth of the nodes each: all at once would keep batches waiting for processors and disks


@dataclass
class _Snapshot:
    lease: str | None = None
    to_ask: list[str] = field(default_factory=list)
    max_asked: int = 1
    asked: set[str] = field(default_factory=set)  # and not answered
    states: dict[UnitId, StateRef] = field(default_factory=dict)
    unchanged: dict[UnitId, UnchangedUnit] = field(default_factory=dict)
    reported_by: dict[UnitId, str] = field(default_factory=dict)  # the node that either is from
    committing: bool = False

    def drop(self, units: Iterable[UnitId]) -> None:
        for unit in units:
            self.states.pop(unit, None)
            self.unchanged.pop(unit, None)
            self.reported_by.pop(unit, None)


class Snapshots:
    """At most one at a time. `through` returns the newest batch that the committed state of a unit includes."""

    def __init__(self, through: Callable[[UnitId], Batch]) -> None:
        self.ended = 0
        self._is_due = False
        self._through = through
        self._snapshot: _Snapshot | None = None

    @property
    def is_committing(self) -> bool:
        """Whether the log may be shortened at any moment: no unit may start from what the manifest says now."""
        return self._snapshot is not None and self._snapshot.committing

    def request(self) -> None:
        """Let a snapshot begin as soon as a node can save its units, unless one is under way."""
        self._is_due = self._snapshot is None

    def begin_if_due(self) -> list[Command]:
        if not self._is_due:
            return []
        self._is_due, self._snapshot = False, _Snapshot()
        return [commands.OpenSnapshotLease()]

    def lease_opened(self, lease: str, nodes: Sequence[str]) -> None:
        """Let these nodes save their units, one after the other."""
        if self._snapshot is not None and self._snapshot.lease is None:
            self._snapshot.lease, self._snapshot.to_ask = lease, list(nodes)
            self._snapshot.max_asked = -(-len(nodes) // _TURNS)

    def next_to_ask(self) -> tuple[str, str] | None:
        """Return the node whose turn it is, and the lease for its states; None if none is left or others are at it."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.lease is None or not snapshot.to_ask:
            return None
        if len(snapshot.asked) >= snapshot.max_asked:
            return None
        node = snapshot.to_ask.pop(0)
        snapshot.asked.add(node)
        return node, snapshot.lease

    def snapshot_taken(self, report: SnapshotTaken) -> None:
        """Record the states of a node. A unit that moved meanwhile may be in two reports: its newer state is used."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.lease != report.lease or report.node not in snapshot.asked:
            return
        snapshot.asked.remove(report.node)
        for ref in report.states:
            known = snapshot.states.get(ref.unit)
            if known is None or known.batch < ref.batch:
                snapshot.states[ref.unit], snapshot.reported_by[ref.unit] = ref, report.node
        for unchanged in report.unchanged:
            if unchanged.unit not in snapshot.states:
                snapshot.unchanged[unchanged.unit] = unchanged
                snapshot.reported_by[unchanged.unit] = report.node

    def node_lost(self, node: str, units: Iterable[UnitId]) -> None:
        """Do not wait for that node; leave out its states, and the states of units that it owned.

        The states are intact, but the next owner of a unit may start from an older one and needs the log after it.
        Committing the newer one would let that log go.
        """
        snapshot = self._snapshot
        if snapshot is None or snapshot.committing:
            return
        snapshot.asked.discard(node)
        if node in snapshot.to_ask:
            snapshot.to_ask.remove(node)
        snapshot.drop(units)
        snapshot.drop([unit for unit, reporter in snapshot.reported_by.items() if reporter == node])

    def drop(self, units: Iterable[UnitId]) -> None:
        """Leave out what was saved of these units."""
        if self._snapshot is not None and not self._snapshot.committing:
            self._snapshot.drop(units)

    def commit_if_complete(self, published: Batch, units: UnitStates) -> list[Command]:
        """Commit when all nodes have answered and the results of every batch that the states include are published."""
        snapshot = self._snapshot
        if snapshot is None or snapshot.lease is None or snapshot.to_ask or snapshot.asked or snapshot.committing:
            return []
        if any(ref.batch > published for ref in snapshot.states.values()):
            return []
        snapshot.committing = True
        states = tuple(ref for ref in snapshot.states.values() if ref.batch > units.through(ref.unit))
        unchanged = {
            unit: Batch(min(known.through, published))
            for unit, known in snapshot.unchanged.items()
            if unit not in snapshot.states and known.changed <= self._through(unit) < min(known.through, published)
        }
        return [commands.CommitStates(snapshot.lease, states, unchanged, published)]

    def end(self) -> None:
        self._snapshot = None
        self.ended += 1
