"""Messages to one incarnation of a node: in order, each again and again until it was heard or the node is lost."""

import logging
import queue
import threading
from typing import Any

from elastic.runtime.wire import Peer, PeerUnavailable, Refused

_log = logging.getLogger(__name__)
_PAUSE_SECONDS = 0.1


class Outbox:
    """Sends in a thread of its own until it is closed; what it has not sent then, nobody needs."""

    def __init__(self, node: str, peer: Peer) -> None:
        self.peer = peer
        self._node = node
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
        while (message := self._queue.get()) is not None:
            while not self._closing.is_set() and not self._sent(*message):
                self._closing.wait(_PAUSE_SECONDS)
            self._sent_before += 1
        self.peer.close()

    def _sent(self, kind: str, document: dict[str, Any]) -> bool:
        try:
            self.peer.call("command", {"number": self._sent_before, "kind": kind, "message": document})
        except PeerUnavailable:
            return False
        except Refused as refused:
            # It will not accept this however often it is told; the node's silence or its failure report says the rest.
            _log.error("%s refused %s: %s", self._node, kind, refused)
        return True
