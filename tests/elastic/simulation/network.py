"""A network that loses, delays, reorders and repeats calls, and that can be cut."""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from elastic.local import LocalNetwork
from elastic.wire import CALL_SECONDS, Endpoint, Peer, PeerUnavailable
from elastic.wire.network import Action, Download, Upload
from tests.elastic.simulation.faults import Faults
from tests.elastic.simulation.scheduler import Process, Scheduler

_LATENCY_SECONDS = 0.01  # at most, in each direction
_SLOW_SECONDS = (0.05, 0.3, 1.5)
_LATE_SECONDS = (0.3, 2.0, 12.0)
_QUIET = "heartbeat"  # there are too many for a story


class FaultyNetwork:
    """A `Network` between simulated processes: a handler runs in a thread of the process that listens.

    When a process has been killed, callers see a closed connection at once; when its machine has vanished or is cut
    off, they wait for their timeout.
    """

    def __init__(
        self, scheduler: Scheduler, chance: random.Random, faults: Callable[[], Faults], tell: Callable[..., None]
    ) -> None:
        self.scheduler = scheduler
        self.cut_off: set[Process] = set()
        self.calls = self.failures = 0
        self._chance = chance
        self._faults = faults
        self._tell = tell
        self._local = LocalNetwork()
        self._owners: dict[str, Process] = {}

    def listen(
        self,
        host: str,
        token: str,
        actions: Mapping[str, Action],
        upload: Upload | None = None,
        download: Download | None = None,
    ) -> Endpoint:
        endpoint = self._local.listen(host, token, actions, upload, download)
        self._owners[endpoint.address] = self.scheduler.process
        return endpoint

    def connect(self, address: str, token: str) -> "FaultyPeer":
        return FaultyPeer(self, self._local.connect(address, token))

    def exchange(self, address: str, what: str, content: Any, deliver: Callable[[], Any], timeout: float) -> Any:
        """Deliver a call and bring its answer back, as far as the seed allows."""
        self.calls += 1
        caller, owner = self.scheduler.process, self._owners.get(address)
        self.scheduler.sleep(self._chance.random() * _LATENCY_SECONDS)
        faults, kind = self._faults(), self._chance.random()
        fate = _choose(kind, faults)
        if fate or content.get("kind") != _QUIET:
            self._tell(caller, "->", owner, what, content, fate)
        if self._is_cut(caller, owner):
            return self._fail(address, "is cut off", timeout)
        if fate == "lost":
            return self._fail(address, "the call got lost", self._patience(timeout))
        if fate == "late":
            later = self._chance.choice(_LATE_SECONDS)
            wait_and_deliver = partial(self._deliver_late, owner, what, deliver, later)
            self.scheduler.spawn(wait_and_deliver, "late call", self.scheduler.world)
            return self._fail(address, "the call is late", self._patience(timeout))
        if fate == "slow":
            self.scheduler.sleep(self._chance.choice(_SLOW_SECONDS))
        answer = self._deliver(address, owner, what, deliver, timeout)
        if fate == "lost_answer" or self._is_cut(caller, owner):
            return self._fail(address, "the answer got lost", self._patience(timeout))
        self.scheduler.sleep(self._chance.random() * _LATENCY_SECONDS)
        return answer()

    def _deliver(
        self, address: str, owner: Process | None, what: str, deliver: Callable[[], Any], timeout: float
    ) -> Callable[[], Any]:
        """Run the handler in a thread of its process; returns what returns its answer or raises its error."""
        if owner is None or not owner.is_alive:
            return self._fail(address, "nothing listens there", 0.0)  # type: ignore[no-any-return]
        outcome: list[Callable[[], Any]] = []

        def handle() -> None:
            try:
                answer = deliver()
            except Exception as error:  # noqa: BLE001 - raised to the caller
                outcome.append(lambda error=error: _raise(error))  # type: ignore[misc]
            else:
                outcome.append(lambda: answer)

        thread = self.scheduler.spawn(handle, f"serve {what}", owner)
        thread.join(timeout)
        if not outcome:
            return self._fail(address, "no answer came", 0.0)  # type: ignore[no-any-return]
        return outcome[0]

    def _deliver_late(self, owner: Process | None, what: str, deliver: Callable[[], Any], seconds: float) -> None:
        self.scheduler.sleep(seconds)
        if owner is not None and owner.is_alive:
            self._tell("late:", owner, what)
            self.scheduler.spawn(lambda: _ignore_errors(deliver), f"serve {what}", owner)

    def _fail(self, address: str, why: str, after_seconds: float) -> Any:
        self.failures += 1
        self.scheduler.sleep(after_seconds)
        raise PeerUnavailable(f"{address}: {why}")

    def _patience(self, timeout: float) -> float:
        return timeout if self._chance.random() < self._faults().hang else self._chance.random() * 0.1

    def _is_cut(self, caller: Process, owner: Process | None) -> bool:
        return caller is not owner and (caller in self.cut_off or owner in self.cut_off)


def _choose(kind: float, faults: Faults) -> str:
    for fate in ("lost", "lost_answer", "late", "slow"):
        kind -= getattr(faults, fate)
        if kind < 0:
            return fate
    return ""


def _raise(error: Exception) -> Any:
    raise error


def _ignore_errors(deliver: Callable[[], Any]) -> None:
    """The caller has gone on without an answer."""
    with suppress(Exception):
        deliver()


class FaultyPeer:
    """A calling end of a `FaultyNetwork`."""

    def __init__(self, network: FaultyNetwork, peer: Peer) -> None:
        self.address = peer.address
        self._network = network
        self._peer = peer

    def call(self, action: str, document: dict[str, Any], timeout: float = CALL_SECONDS) -> Any:
        return self._network.exchange(
            self.address, action, document, lambda: self._peer.call(action, document), timeout
        )

    def upload(self, header: dict[str, Any], table: pa.Table, timeout: float = CALL_SECONDS) -> None:
        self._network.exchange(self.address, "upload", header, lambda: self._peer.upload(header, table), timeout)

    def download(self, header: dict[str, Any], size: int, timeout: float = CALL_SECONDS) -> memoryview:
        found: memoryview = self._network.exchange(
            self.address, "download", header, lambda: self._peer.download(header, size), timeout
        )
        return found

    def close(self) -> None:
        self._peer.close()
