"""Times of each loss: the driver notices it, orders nodes to take over, and gets their reports."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from elastic.core.commands import Send
from elastic.core.events import NodeLost
from elastic.core.ids import UnitId
from elastic.core.messages import InstallUnits, UnitsInstalled
from elastic.driver import event_loop


class Marks(NamedTuple):
    """Times of a recovery, in seconds since 1970: loss noticed, takeover ordered, units installed."""

    noticed: float
    ordered: float
    installed: float


class Decisions(logging.Handler):
    """Keeps the decisions of the driver's loop about losses and installations, with their times."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._decided: list[tuple[Any, float]] = []

    def emit(self, record: logging.LogRecord) -> None:
        decision = record.args[0] if isinstance(record.args, tuple) and record.args else None
        is_marked = isinstance(getattr(decision, "event", None), NodeLost | UnitsInstalled)
        if is_marked or _find_installed(decision):
            self._decided.append((decision, record.created))

    def find(self, node: str, since: float) -> Marks | None:
        """Return the times of the recovery from the first loss of a node after a moment; None before its end."""
        noticed = ordered = 0.0
        missing: set[UnitId] = set()
        for decision, at in list(self._decided):
            event = decision.event
            if not noticed:
                noticed = at if at >= since and isinstance(event, NodeLost) and event.node == node else 0.0
            if noticed and not ordered and (units := _find_installed(decision)):
                ordered, missing = at, units
            if ordered and isinstance(event, UnitsInstalled):
                missing.difference_update(event.units)
                if not missing:
                    return Marks(noticed, ordered, at)
        return None


def _find_installed(decision: Any) -> set[UnitId]:
    """Return the units that a decision gave to nodes, other than as standbys."""
    sent = (one.message for one in getattr(decision, "commands", ()) if isinstance(one, Send))
    messages = [message for message in sent if isinstance(message, InstallUnits)]
    return {handle.unit for message in messages for handle in message.units if not handle.standby}


@contextmanager
def listen_to_decisions() -> Iterator[Decisions]:
    """Listen to the loop of the job in this process."""
    logger, decisions = logging.getLogger(event_loop.__name__), Decisions()
    level, propagate = logger.level, logger.propagate
    logger.addHandler(decisions)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield decisions
    finally:
        logger.removeHandler(decisions)
        logger.setLevel(level)
        logger.propagate = propagate
