"""Saved states of adopted units, loaded behind the working thread."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from elastic.runtime.node.retrieving import Retrieval
from elastic.runtime.patience import patiently
from elastic.runtime.protocol import Held
from elastic.runtime.wire import Peer
from storage.state import StateManager, StateRef
from storage.stores.protocol import Bytes

_AT_ONCE = 4  # loads: one that waits for a source that is gone must not keep its own correction waiting
_DOWNLOAD_SECONDS = 30.0  # a gigabyte over a slow link; of a source that hangs, the controller knows sooner

Loaded = Callable[[dict[Held, Any], int], None]


class Loader:
    """Loads in the background and hands the states to the working thread through `post`."""

    def __init__(
        self,
        manager: StateManager,
        token: str,
        patience_seconds: float,
        post: Callable[[Callable[[], None]], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._manager = manager
        self._token = token
        self._patience = patience_seconds
        self._post = post
        self._on_failure = on_failure
        self._wanted: dict[int, StateRef | None] = {}  # by slot: what was asked for last
        self._peers: dict[str, Peer] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._executor = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="load")

    def load(self, units: Sequence[Held], loaded: Loaded) -> None:
        """Hand over all states, None where there is none, and the number of bytes that came from other nodes.

        At once, so that a replay reads the log once; only units for which another state is asked for later are left
        out.
        """
        self._wanted.update((held.slot, held.state) for held in units)
        self._executor.submit(self._load, units, loaded)

    def close(self) -> None:
        self._closing.set()
        self._executor.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for peer in self._peers.values():
                peer.close()

    def _load(self, units: Sequence[Held], loaded: Loaded) -> None:
        retrieval = Retrieval(
            self._manager, self._download, units, lambda held: self._wanted.get(held.slot) == held.state
        )
        try:
            patiently(retrieval.attempt, self._patience, self._closing)
        except Exception as error:  # noqa: BLE001 - handed to the working thread, which ends the node with it
            if not self._closing.is_set():
                self._on_failure(error)
            return
        self._post(lambda: loaded(retrieval.found, retrieval.direct_bytes))

    def _download(self, address: str, ref: StateRef) -> Bytes:
        with self._lock:
            if address not in self._peers:
                self._peers[address] = Peer(address, self._token)
            peer = self._peers[address]
        return peer.download({"state": ref.key}, ref.size, _DOWNLOAD_SECONDS)
