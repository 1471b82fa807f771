"""What a job tells about itself."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self


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
    """A job at one moment. Batches up to `last_batch` count, up to `applied_batch` their results are visible."""

    name: str
    state: str  # running, failed or stopped
    epoch: int
    last_batch: int
    applied_batch: int
    saved_batch: int  # all states are saved as of this one
    batches_ahead: int
    rows: int  # taken in during this life of the job
    losses: int  # of nodes, in this life
    recoveries: tuple[Mapping[str, Any], ...]
    nodes: tuple[NodeStatus, ...]

    def __repr__(self) -> str:
        """One line; `to_json` has everything."""
        return (
            f"JobStatus({self.name!r}, {self.state}, nodes={len(self.nodes)}, epoch={self.epoch}, "
            f"batch={self.last_batch}, batches_ahead={self.batches_ahead}, rows={self.rows}, losses={self.losses})"
        )

    @classmethod
    def of(cls, name: str, state: str, found: Mapping[str, Any], rows: int) -> Self:
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
            )
            for node, known in found["nodes"].items()
        )
        plain = {key: found[key] for key in ("epoch", "last_batch", "applied_batch", "saved_batch", "batches_ahead")}
        return cls(
            name=name,
            state=state,
            rows=rows,
            losses=found["losses"],
            recoveries=tuple(found["recoveries"]),
            nodes=nodes,
            **plain,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
