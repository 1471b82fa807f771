"""Messages to one incarnation of a node: in order, each again and again until it was heard or the node is lost."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from elastic.runtime.wire import Peer, PeerUnavailable, Refused

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 0.1


class Outbox:
    """Sends in a thread of its own until it is closed; what it has not sent then, nobody needs.

    A node takes commands in their order. If it refuses one, or its handler crashes, those after it could never be
    taken: the outbox sends nothing more and calls `on_refused(node, why)`, so that the incarnation is replaced.
    """

    def __init__(self, node: str, peer: Peer, on_refused: Callable[[str, str], None]) -> None:
        self.peer = peer
        self._node = node
        self._on_refused = on_refused
        self._closing = threading.Event()
        self._queue: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._sent_before = 0
        self._thread = threading.Thread(target=self._send_all, name=f"outbox-{node}", daemon=True)
        self._thread.start()

    def send(self, kind: str, document: dict[str, Any]) -> None:
        self._queue.put((kind, document))

    def close_when_sent(self) -> None:
        self._queue.put(None)

    def close(self) -> None:
        self._closing.set()
        self._queue.put(None)

    def _send_all(self) -> None:
        try:
            while (message := self._queue.get()) is not None:
                while not self._closing.is_set() and not self._sent(*message):
                    self._closing.wait(_PAUSE_SECONDS)
                self._sent_before += 1
        except Refused as refused:
            _log.error("%s did not take a command: %s", self._node, refused)
            self._on_refused(self._node, f"it did not take a command: {refused}")
        finally:
            self.peer.close()

    def _sent(self, kind: str, document: dict[str, Any]) -> bool:
        try:
            self.peer.call("command", {"number": self._sent_before, "kind": kind, "message": document})
        except PeerUnavailable:
            return False
        return True
