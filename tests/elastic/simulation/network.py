"""A network that loses, delays, reorders and repeats calls, and that can be cut."""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from elastic.local import LocalNetwork
from elastic.wire import CALL_SECONDS, Endpoint, Holding, Peer, PeerUnavailable
from elastic.wire.network import Action, Download, Hold, Upload
from tests.elastic.simulation.faults import Faults
from tests.elastic.simulation.scheduler import Process, Scheduler

_LATENCY_SECONDS = 0.01  # at most, in each direction
_SLOW_SECONDS = (0.05, 0.3, 1.5)
_LATE_SECONDS = (0.3, 2.0, 12.0)
_NOTICE_SECONDS = (0.0, 0.0, 0.02, 1.0, 30.0)  # from the death of a process until a broken connection is seen
_RESET_SECONDS = 20.0  # mean time after which a connection that is held breaks although both ends live
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
        hold: Hold | None = None,
    ) -> Endpoint:
        endpoint = self._local.listen(host, token, actions, upload, download, hold)
        self._owners[endpoint.address] = self.scheduler.process
        return endpoint

    def connect(self, address: str, token: str) -> "FaultyPeer":
        return FaultyPeer(self, self._local.connect(address, token))

    def hold(self, address: str, document: dict[str, Any], deliver: Callable[[], Any]) -> "FaultyHolding":
        holding = self.exchange(address, "hold", document, deliver, CALL_SECONDS)
        return FaultyHolding(self, self._owners[address], holding)

    def is_gone(self, address: str, timeout: float) -> bool:
        """A machine that is there refuses connections to a process that has died; one that is away answers nothing."""
        self.scheduler.sleep(self._chance.random() * _LATENCY_SECONDS)
        owner = self._owners[address]
        if self._is_cut(self.scheduler.process, owner):
            self.scheduler.sleep(timeout)
            return False
        return not owner.is_alive or self._local.connect(address, "").is_gone()

    def notice_seconds(self) -> float:
        return self._chance.choice(_NOTICE_SECONDS)

    def reset_seconds(self) -> float:
        return self._chance.expovariate(1 / _RESET_SECONDS)

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

    def hold(self, document: dict[str, Any]) -> "FaultyHolding":
        return self._network.hold(self.address, document, lambda: self._peer.hold(document))

    def is_gone(self, timeout: float = CALL_SECONDS) -> bool:
        return self._network.is_gone(self.address, timeout)

    def close(self) -> None:
        self._peer.close()


class FaultyHolding:
    """A call that stays open, and breaks when its process dies (seen at once, late or never), or for no reason."""

    def __init__(self, network: FaultyNetwork, owner: Process, holding: Holding) -> None:
        self._network = network
        self._owner = owner
        self._holding = holding
        self._is_closed = False

    def wait(self) -> None:
        scheduler, ends_well = self._network.scheduler, []

        def wait() -> None:
            with suppress(PeerUnavailable):
                self._holding.wait()
                ends_well.append(True)

        # It ends with the process of the owner; if that vanishes silently, nobody is told.
        if self._owner.is_alive:
            scheduler.spawn(wait, "hold", self._owner).join(self._network.reset_seconds())
        if not self._owner.is_alive and not self._is_closed:
            scheduler.sleep(self._network.notice_seconds())
        if not ends_well:
            raise PeerUnavailable("the connection broke")

    def close(self) -> None:
        self._is_closed = True
        self._holding.close()
