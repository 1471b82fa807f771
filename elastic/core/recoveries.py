"""Lost nodes: how often, why, how long it took to replace each, and how much was replayed."""

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from elastic.core.messages import CaughtUp

_KEPT = 1_000


@dataclass(frozen=True)
class Recovery:
    """A lost node was replaced, by standbys or by its next incarnation.

    `seconds` are from the loss until its units had caught up with the others.
    """

    node: str
    reason: str
    seconds: float
    units: int
    replayed_rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Outage:
    """A lost node whose units have not caught up on the nodes that are `awaited`."""

    since: float
    reason: str = ""
    awaited: set[str] = field(default_factory=set)
    units: int = 0
    replayed_rows: int = 0


class Recoveries:
    """The losses in one life of a job. Times are those of the driver's clock."""

    def __init__(self) -> None:
        self.losses = 0
        self.completed: tuple[Recovery, ...] = ()
        self._kept: deque[Recovery] = deque(maxlen=_KEPT)
        self._lost: dict[str, _Outage] = {}

    def node_lost(self, node: str, reason: str, at: float, owners: Iterable[str]) -> None:
        """Note a loss; `owners` are the nodes that own its units from now on: its next incarnation, or standbys."""
        self.losses += 1
        # A second loss on the way belongs to the same outage.
        awaited = set(owners)
        for outage in self._lost.values():
            if node in outage.awaited:
                outage.awaited = (outage.awaited - {node}) | awaited
        if awaited or node in self._lost:
            known = self._lost.setdefault(node, _Outage(at))
            known.reason, known.awaited = reason, known.awaited | awaited

    def node_stopped(self, node: str) -> None:
        """Stop the clock for a node that is not wanted any more; one that gets its name later is another one."""
        self._lost.pop(node, None)

    def caught_up(self, report: CaughtUp, at: float) -> None:
        for node, outage in list(self._lost.items()):
            if report.node not in outage.awaited:
                continue
            outage.awaited.remove(report.node)
            outage.units += report.units
            outage.replayed_rows += report.replayed_rows
            if not outage.awaited:
                del self._lost[node]
                self._kept.append(Recovery(node, outage.reason, at - outage.since, outage.units, outage.replayed_rows))
                self.completed = tuple(self._kept)
