"""The sending end of a reliable channel: documents in order, each repeated until the peer acknowledges it."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elastic import threads
from elastic.wire.network import Peer, PeerUnavailable, Refused

if TYPE_CHECKING:
    from queue import SimpleQueue

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 0.1  # before a document is sent again


class ReliableSender:
    """Calls one action of a peer with each document, in a thread of its own, until it is closed.

    Queued documents get a `number`, counted from 0, by which the receiver can order them and drop repetitions. After a
    refusal the sender sends nothing more, because the receiver could not handle what follows, and calls `on_refused`.
    `on_acknowledged` is called after every acknowledged document, `on_end` when the thread ends.
    """

    def __init__(
        self,
        peer: Peer,
        action: str,
        name: str,
        *,
        on_refused: Callable[[Refused], None],
        on_acknowledged: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._peer = peer
        self._action = action
        self._on_refused = on_refused
        self._on_acknowledged = on_acknowledged
        self._on_end = on_end
        self._closing = threads.Event()
        self._queue: SimpleQueue[dict[str, Any] | None] = threads.Queue()
        self._thread = threads.Thread(target=self._send_all, name=name)

    def start(self) -> None:
        self._thread.start()

    def send(self, document: dict[str, Any]) -> None:
        """Queue a document; returns at once."""
        self._queue.put(document)

    def deliver(self, document: dict[str, Any], give_up: Callable[[], bool] = lambda: False) -> None:
        """Send a document now, ahead of the queue, and return when the peer has answered.

        Returns without an answer when the sender is closed, or when `give_up` says so after a failed attempt.
        """
        try:
            self._repeat(document, give_up)
        except Refused as refused:
            self._on_refused(refused)

    def try_once(self, document: dict[str, Any]) -> bool:
        """Send a document now, ahead of the queue, without repeating it; return whether the peer answered."""
        try:
            return self._attempt(document)
        except Refused as refused:
            self._on_refused(refused)
            return True

    def finish(self) -> None:
        """End the thread when everything queued is acknowledged; returns at once."""
        self._queue.put(None)

    def close(self, flush_seconds: float = 0.0) -> None:
        """Send what is queued as far as that works in this time, drop the rest, and end the thread."""
        self._queue.put(None)
        if flush_seconds and self._thread.ident is not None:
            self._thread.join(flush_seconds)
        self._closing.set()

    def _send_all(self) -> None:
        number = 0
        try:
            while (document := self._queue.get()) is not None:
                self._repeat({"number": number, **document})
                number += 1
        except Refused as refused:
            self._on_refused(refused)
        finally:
            self._on_end()

    def _repeat(self, document: dict[str, Any], give_up: Callable[[], bool] = lambda: False) -> None:
        while not self._closing.is_set() and not self._attempt(document):
            if give_up():
                return
            self._closing.wait(_PAUSE_SECONDS)

    def _attempt(self, document: dict[str, Any]) -> bool:
        """Return whether the peer acknowledged the document; raises `Refused`."""
        if self._closing.is_set():
            return False
        try:
            self._peer.call(self._action, document)
        except PeerUnavailable as error:
            _log.debug("%s did not acknowledge %s: %s", self._peer.address, document.get("kind"), error)
            return False
        self._on_acknowledged()
        return True
