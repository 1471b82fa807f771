"""The status of a job, made from the driver's view."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from elastic import threads
from elastic.core.nodes import NodeView
from elastic.core.statistics import UnitStatistics
from elastic.core.view import JobView

_LEAST_OVERDUE_SECONDS = 30.0  # compiling an operator's loops in its first step takes most of that
_OVERDUE_FACTOR = 10.0


@dataclass(frozen=True)
class UnitStatus:
    """One unit of state: rows and seconds since it came to its node, and the size of its state.

    `guests`: not the task itself, but the keys that a table places beside it.
    """

    stage: int
    task: int
    rows: int
    seconds: float
    state_bytes: int
    guests: bool = False


@dataclass(frozen=True)
class StepStatus:
    """A step that a node is taking now: one round of one batch, and the tasks that it is working on.

    It is `overdue` when it has run for more than 30 s and for more than ten times as long as the longest of the node's
    latest hundred steps.
    """

    batch: int
    round: int
    tasks: tuple[int, ...]
    seconds: float
    overdue: bool

    @classmethod
    def of(cls, node: NodeView, now: float) -> Self | None:
        """Return the step that a node's last heartbeat reported, as of now; None between two steps."""
        running = None if node.heartbeat is None else node.heartbeat.running
        if running is None:
            return None
        seconds = running.seconds + now - node.heartbeat_at
        overdue = seconds > max(_LEAST_OVERDUE_SECONDS, _OVERDUE_FACTOR * running.usual_seconds)
        tasks = tuple(sorted({unit.task for unit in running.units}))
        return cls(running.position.batch, running.position.round, tasks, seconds, overdue)

    def __str__(self) -> str:
        tasks = f"task {self.tasks[0]}" if len(self.tasks) == 1 else f"{len(self.tasks)} tasks"
        return f"batch {self.batch}, round {self.round} of {tasks} for {self.seconds:.0f} s"


@dataclass(frozen=True)
class NodeStatus:
    """One node as its last heartbeat reported it; without an address it is starting."""

    name: str
    serving: bool
    address: str
    pid: int
    loading: int  # units whose state is on its way
    pending_steps: int  # committed steps that it has not taken
    staged_bytes: int
    units: tuple[UnitStatus, ...]
    step: StepStatus | None = None  # the step that it is taking
    standbys: tuple[UnitStatus, ...] = ()  # units of other nodes that it follows
    lag: int = 0  # published batches that some of these have not taken

    @classmethod
    def of(cls, node: NodeView, now: float, published: int = -1) -> Self:
        """Return the status of a node of a job whose newest `published` batch is this."""
        heartbeat = node.heartbeat
        if heartbeat is None:
            return cls(node.name, node.serving, node.address, node.pid, 0, 0, 0, ())
        return cls(
            node.name,
            node.serving,
            node.address,
            node.pid,
            heartbeat.loading,
            heartbeat.pending_steps,
            heartbeat.staged_bytes,
            _describe_units(heartbeat.units),
            StepStatus.of(node, now),
            _describe_units(heartbeat.standbys),
            max(0, published - heartbeat.followed_batch) if heartbeat.standbys else 0,
        )

    def __repr__(self) -> str:
        """One line; `units` has every unit."""
        state = "serving" if self.serving else "starting"
        standbys = f"standbys={len(self.standbys)}, " if self.standbys else ""
        return (
            f"NodeStatus({self.name!r}, {state}, units={len(self.units)}, {standbys}rows={self.rows}, "
            f"state_bytes={self.state_bytes}, pending_steps={self.pending_steps})"
        )

    @property
    def rows(self) -> int:
        return sum(unit.rows for unit in self.units)

    @property
    def state_bytes(self) -> int:
        return sum(unit.state_bytes for unit in self.units)


def _describe_units(units: Iterable[UnitStatistics]) -> tuple[UnitStatus, ...]:
    return tuple(
        UnitStatus(one.unit.stage, one.unit.task, one.rows, one.seconds, one.state_bytes, one.unit.guests)
        for one in units
    )


@dataclass(frozen=True)
class JobStatus:
    """A job at one moment. Batches up to `last_batch` are committed, those up to `published_batch` published."""

    name: str
    state: str  # running, failed or stopped
    epoch: int
    last_batch: int
    published_batch: int
    saved_batch: int  # all states are saved as of this one
    pending_batches: int
    rows: int  # ingested in this life of the job
    losses: int  # of nodes, in this life
    recoveries: tuple[Mapping[str, Any], ...]
    nodes: tuple[NodeStatus, ...]
    spares: int = 0  # processes that wait for the name of a node
    sink_error: str | None = None  # why results no longer reach a sink
    problems: tuple[str, ...] = ()  # what is wrong with a job that runs nevertheless

    @classmethod
    def of(cls, name: str, state: str, view: JobView, rows: int = 0, sink_error: str | None = None) -> Self:
        now = threads.monotonic()
        nodes = tuple(NodeStatus.of(node, now, view.published_batch) for node in view.nodes)
        return cls(
            name,
            state,
            view.epoch,
            view.newest_batch,
            view.published_batch,
            view.saved_batch,
            view.pending_batches,
            rows,
            view.losses,
            tuple(recovery.to_json() for recovery in view.recoveries),
            nodes,
            view.spares,
            sink_error,
            tuple(_problems(view, nodes, sink_error)) if state == "running" else (),
        )

    def __repr__(self) -> str:
        """One line; `to_json` has everything."""
        return (
            f"JobStatus({self.name!r}, {self.state}, nodes={len(self.nodes)}, epoch={self.epoch}, "
            f"batch={self.last_batch}, pending_batches={self.pending_batches}, rows={self.rows}, losses={self.losses})"
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _problems(view: JobView, nodes: tuple[NodeStatus, ...], sink_error: str | None) -> Iterator[str]:
    for node in nodes:
        if node.step is not None and node.step.overdue:
            yield f"{node.name} has been taking {node.step}, far longer than usual"
    for name, positions in view.deaths.items():
        for position, deaths in positions.items():
            yield f"{name} died {deaths} times while it took batch {position.batch}, round {position.round}"
    for name, failed in view.failed_starts.items():
        yield f"{name} failed to start {failed.attempts} times in a row: {failed.reason}"
    if missing := view.standbys_without_node:
        count = len(view.routing.assignment.nodes)
        are = "node is" if count == 1 else "nodes are"
        yield f"{count} {are} too few for the standbys: each unit lacks {missing}. Scale out, or lower `standbys`."
    if sink_error is not None:
        yield f"results no longer reach the sink: {sink_error}"
