"""Lost nodes: how often, why, how long it took to replace each, and how much was replayed."""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

from elastic.core.messages import CaughtUp

_KEPT = 1_000


@dataclass(frozen=True)
class Recovery:
    """One node was replaced: `seconds` from the loss until its units had caught up with the others."""

    node: str
    reason: str
    seconds: float
    units: int
    replayed_rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Recoveries:
    """The losses in one life of a job. Times are those of the driver's clock."""

    def __init__(self) -> None:
        self.losses = 0
        self.completed: tuple[Recovery, ...] = ()
        self._kept: deque[Recovery] = deque(maxlen=_KEPT)
        self._lost: dict[str, tuple[float, str]] = {}

    def node_lost(self, node: str, reason: str, at: float) -> None:
        self.losses += 1
        # A second loss on the way belongs to the same outage.
        since, _ = self._lost.get(node, (at, ""))
        self._lost[node] = (since, reason)

    def node_stopped(self, node: str) -> None:
        """Stop the clock for a node that is not wanted any more; one that gets its name later is another one."""
        self._lost.pop(node, None)

    def caught_up(self, report: CaughtUp, at: float) -> None:
        if report.node not in self._lost:
            return
        since, reason = self._lost.pop(report.node)
        self._kept.append(Recovery(report.node, reason, at - since, report.units, report.replayed_rows))
        self.completed = tuple(self._kept)
