"""What happened to nodes: who was lost and why, how long it took to replace it, how much was repeated."""

import logging
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

from elastic.runtime.protocol import CaughtUp

_log = logging.getLogger(__name__)
_KEPT = 1_000


@dataclass(frozen=True)
class Recovery:
    """One node came back: `seconds` from the loss until its units were where the others are."""

    node: str
    reason: str
    seconds: float
    units: int
    replayed_rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Recoveries:
    """The losses of one life of a job. Called by the controller only."""

    def __init__(self) -> None:
        self.done: deque[Recovery] = deque(maxlen=_KEPT)
        self.losses = 0
        self._lost: dict[str, tuple[float, str]] = {}

    def lost(self, node: str, reason: str) -> None:
        self.losses += 1
        # A second loss on the way belongs to the same outage.
        started, _ = self._lost.get(node, (time.monotonic(), ""))
        self._lost[node] = (started, reason)
        _log.warning("%s is lost: %s. Another one takes its place.", node, reason)

    def left(self, node: str) -> None:
        """Nobody waits for it any more; a node that gets its name later is another one."""
        self._lost.pop(node, None)

    def caught_up(self, report: CaughtUp) -> None:
        node = report.node
        if node not in self._lost:
            return
        started, reason = self._lost.pop(node)
        recovery = Recovery(node, reason, time.monotonic() - started, report.units, report.replayed_rows)
        self.done.append(recovery)
        _log.warning(
            "%s is back after %.2f s: %d units, %d rows replayed (lost: %s)",
            node,
            recovery.seconds,
            recovery.units,
            recovery.replayed_rows,
            reason,
        )
