"""What a job tells about itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

_LEAST_OVERDUE_SECONDS = 30.0  # compiling an operator's loops in its first step takes most of that
_OVERDUE_FACTOR = 10.0


@dataclass(frozen=True)
class UnitStatus:
    """One unit of state: rows and seconds since it came to its node, and the size of its state."""

    slot: int
    rows: int
    seconds: float
    state_bytes: int


class HeavyKey(NamedTuple):
    """A key that came often: about `estimate` times since the node started, at least `lower_bound` times."""

    key: str
    estimate: int
    lower_bound: int


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
    def of(cls, found: Mapping[str, Any]) -> Self:
        seconds = float(found["seconds"])
        overdue = seconds > max(_LEAST_OVERDUE_SECONDS, _OVERDUE_FACTOR * found["usual_seconds"])
        return cls(found["batch"], found["round"], tuple(found["tasks"]), seconds, overdue)

    def __str__(self) -> str:
        tasks = f"task {self.tasks[0]}" if len(self.tasks) == 1 else f"{len(self.tasks)} tasks"
        return f"batch {self.batch}, round {self.round} of {tasks} for {self.seconds:.0f} s"


@dataclass(frozen=True)
class NodeStatus:
    """One node as it said of itself last; without an address it is starting."""

    name: str
    serving: bool
    address: str
    pid: int
    loading: int  # units whose state is on its way
    waiting_steps: int  # committed steps that it has not taken
    staged_bytes: int
    units: tuple[UnitStatus, ...]
    heavy_keys: tuple[HeavyKey, ...] = ()  # where they are asked for
    step: StepStatus | None = None  # the step that it is taking

    def __repr__(self) -> str:
        """One line; `units` has every unit."""
        state = "serving" if self.serving else "starting"
        return (
            f"NodeStatus({self.name!r}, {state}, units={len(self.units)}, rows={self.rows}, "
            f"state_bytes={self.state_bytes}, waiting_steps={self.waiting_steps})"
        )

    @property
    def rows(self) -> int:
        return sum(unit.rows for unit in self.units)

    @property
    def state_bytes(self) -> int:
        return sum(unit.state_bytes for unit in self.units)


@dataclass(frozen=True)
class JobStatus:
    """A job at one moment. Batches up to `last_batch` count, up to `published_batch` their results are visible."""

    name: str
    state: str  # running, failed or stopped
    epoch: int
    last_batch: int
    published_batch: int
    saved_batch: int  # all states are saved as of this one
    batches_ahead: int
    rows: int  # taken in during this life of the job
    losses: int  # of nodes, in this life
    recoveries: tuple[Mapping[str, Any], ...]
    nodes: tuple[NodeStatus, ...]
    sink_error: str | None = None  # why results no longer reach the sink
    problems: tuple[str, ...] = ()  # what is wrong with a job that runs nevertheless

    def __repr__(self) -> str:
        """One line; `to_json` has everything."""
        return (
            f"JobStatus({self.name!r}, {self.state}, nodes={len(self.nodes)}, epoch={self.epoch}, "
            f"batch={self.last_batch}, batches_ahead={self.batches_ahead}, rows={self.rows}, losses={self.losses})"
        )

    @classmethod
    def of(
        cls, name: str, state: str, found: Mapping[str, Any], rows: int, sink_error: BaseException | None = None
    ) -> Self:
        failed = None if sink_error is None else f"{type(sink_error).__name__}: {sink_error}"
        nodes = tuple(
            NodeStatus(
                node,
                node in found["serving"],
                known["address"],
                known["pid"],
                known.get("loading", 0),
                known.get("waiting_steps", 0),
                known.get("staged_bytes", 0),
                tuple(UnitStatus(*unit) for unit in known.get("units", ())),
                tuple(HeavyKey(*key) for key in known.get("heavy_keys", ())),
                None if known.get("step") is None else StepStatus.of(known["step"]),
            )
            for node, known in found["nodes"].items()
        )
        plain = {key: found[key] for key in ("epoch", "last_batch", "published_batch", "saved_batch", "batches_ahead")}
        return cls(
            name=name,
            state=state,
            rows=rows,
            losses=found["losses"],
            recoveries=tuple(found["recoveries"]),
            nodes=nodes,
            sink_error=failed,
            problems=tuple(_problems(found, nodes, failed)) if state == "running" else (),
            **plain,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _problems(found: Mapping[str, Any], nodes: Sequence[NodeStatus], sink_error: str | None) -> Iterator[str]:
    for node in nodes:
        if node.step is not None and node.step.overdue:
            yield f"{node.name} has been taking {node.step}, far longer than usual"
    for node_name, batch, round_, deaths in found.get("deaths", ()):
        yield f"{node_name} died {deaths} times while it took batch {batch}, round {round_}"
    for node_name, (attempts, why) in found.get("failed_starts", {}).items():
        yield f"{node_name} failed to start {attempts} times in a row: {why}"
    if sink_error is not None:
        yield f"results no longer reach the sink: {sink_error}"
