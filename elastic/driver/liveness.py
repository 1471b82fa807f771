"""Notices the death of a node by the connection that the driver holds open to it, milliseconds after the process died.

The rule: an incarnation is lost when the call that the driver holds open to it breaks *and* its machine refuses a new
connection to its address, so that no process listens there. Nothing else is a loss here:

- the call ends well: the node leaves on purpose, and the launcher reports its end with the reason;
- the call breaks and something listens: the connection was reset on its way, and is opened again;
- the call breaks and nothing answers, or it does not break although the machine is gone: the driver cannot tell whether
  the process lives, so its heartbeats decide, by the timeout.

The driver opens the call, to the address that the incarnation itself reported with the token of the job, and the node
refuses it if it is another incarnation. So a connection from elsewhere can neither keep a node alive nor end one.
"""

import logging
from collections.abc import Callable

from elastic import threads
from elastic.wire import Holding, Peer, PeerUnavailable, Refused

_log = logging.getLogger(__name__)
# A dying process closes its connections one after the other: the one that is held may break before the port is closed.
_FIRST_PAUSE_SECONDS = 0.005
_PROBE_SECONDS = 2.0  # for an answer to a new connection; one that is refused is refused at once


class ConnectionWatch:
    """Holds a call to one incarnation open until it ends; calls `on_death` once, if its process has died.

    `longest_pause_seconds` is the time between two attempts to hold a connection again that breaks again and again.
    """

    def __init__(
        self, peer: Peer, incarnation: str, on_death: Callable[[str], None], *, longest_pause_seconds: float
    ) -> None:
        self._peer = peer
        self._incarnation = incarnation
        self._on_death = on_death
        self._longest_pause_seconds = longest_pause_seconds
        self._closing = threads.Event()
        self._holding: Holding | None = None
        self._thread = threads.Thread(self._watch, f"watch-{incarnation}")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop watching; returns at once."""
        self._closing.set()
        if (holding := self._holding) is not None:
            holding.close()

    def _watch(self) -> None:
        was_held, pause = False, _FIRST_PAUSE_SECONDS
        while not self._closing.is_set():
            try:
                holding = self._peer.hold({"incarnation": self._incarnation})
            except Refused as refused:
                _log.info("%s is not watched: %s", self._incarnation, refused)
                return
            except PeerUnavailable as error:
                _log.debug("%s cannot be reached: %s", self._incarnation, error)
            else:
                was_held, pause = True, _FIRST_PAUSE_SECONDS
                if self._ends_well(holding):
                    return
            # Without a connection before, the address may just be out of the driver's reach.
            if was_held and not self._closing.is_set() and self._peer.is_gone(_PROBE_SECONDS):
                self._on_death("its process died: its connection broke, and nothing listens at its address")
                return
            self._closing.wait(pause)
            pause = min(2 * pause, self._longest_pause_seconds)

    def _ends_well(self, holding: Holding) -> bool:
        """Wait until the call ends; return whether the node ended it, because it leaves."""
        self._holding = holding
        if self._closing.is_set():
            holding.close()
        try:
            holding.wait()
        except PeerUnavailable as error:
            _log.debug("the connection to %s broke: %s", self._incarnation, error)
            return False
        return True
