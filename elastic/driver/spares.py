"""Spare processes that wait for a name: the next incarnation of a node is one of them, if there is one."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from elastic import threads
from elastic.core.messages import SpareReady
from elastic.driver.context import JobContext
from elastic.driver.launcher import Ended, Launcher
from elastic.wire import Peer, PeerUnavailable, Refused

_log = logging.getLogger(__name__)
_ASSIGN_SECONDS = 2.0  # a spare only notes its name; one that takes longer hangs, and a lost node waits for it
_LEAVE_SECONDS = 1.0


@dataclass
class _Spare:
    """A process that starts, or, with a peer, waits for a name."""

    name: str
    since: float
    peer: Peer | None = None


@dataclass(frozen=True)
class _Named:
    """The incarnation that a spare was asked to become."""

    node: str
    incarnation: str
    ended: Ended


class Spares:
    """A launcher that keeps `settings.spares` spares warm, and gives an incarnation to one of them if one is ready.

    Invariant: an incarnation is given to one process only. If it is not known whether a spare has taken the name, the
    incarnation is over, as if its process had died, and the job makes another one. `changed` is called with the number
    of spares that are ready, whenever it changes.
    """

    def __init__(self, context: JobContext, launcher: Launcher, changed: Callable[[int], object]) -> None:
        self._context = context
        self._launcher = launcher
        self._changed = changed
        self._numbers = count(1)
        self._waiting: dict[str, _Spare] = {}
        self._named: dict[str, _Named] = {}  # by spare
        self._lock = threads.Lock()
        self._is_closed = False

    @property
    def ready(self) -> int:
        return sum(spare.peer is not None for spare in list(self._waiting.values()))

    def start(self, node: str, incarnation: str, driver: str, ended: Ended) -> None:
        with self._lock:
            spare = next((spare for spare in self._waiting.values() if spare.peer is not None), None)
            if spare is not None:
                del self._waiting[spare.name]
                self._named[spare.name] = _Named(node, incarnation, ended)
        if spare is None:
            self._launcher.start(node, incarnation, driver, ended)
            return
        self._changed(self.ready)
        # In a thread: the caller is the driver's loop, and a spare may be gone or hang.
        threads.Thread(lambda: self._assign(spare, node, incarnation, ended), f"assign-{incarnation}").start()

    def cancel(self, incarnation: str) -> None:
        self._launcher.cancel(self._process_of(incarnation))

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        names = {self._process_of(incarnation): incarnation for incarnation in incarnations}
        return [names[late] for late in self._launcher.wait(list(names), seconds)]

    def note(self, report: SpareReady) -> None:
        """Handle a spare's report that it waits for a name, repeated as its heartbeat; `Refused` if it must leave."""
        with self._lock:
            if report.incarnation in self._named:
                return  # sent before it got its name
            spare = self._waiting.get(report.incarnation)
            if spare is None:
                raise Refused(f"{report.incarnation} is not a spare of this job any more")
            is_new = spare.peer is None
            spare.since = threads.monotonic()
            if is_new:
                spare.peer = self._context.network.connect(report.address, self._context.token)
        if is_new:
            self._changed(self.ready)

    def replenish(self, driver: str, paused_seconds: float = 0.0) -> None:
        """Start spares in the place of those that were used or have died, and end those that are silent.

        `paused_seconds` is how long the driver itself did not run since the last call; it extends every deadline.
        """
        settings, now = self._context.settings, threads.monotonic()
        with self._lock:
            if self._is_closed:
                return
            for spare in self._waiting.values():
                spare.since = min(now, spare.since + paused_seconds)
            limits = {spare.name: self._limit_seconds(spare) for spare in self._waiting.values()}
            silent = [spare for spare in self._waiting.values() if now - spare.since > limits[spare.name]]
            for spare in silent:
                del self._waiting[spare.name]
            names = [f"spare-{next(self._numbers)}" for _ in range(settings.spares - len(self._waiting))]
            for name in names:
                self._waiting[name] = _Spare(name, now)
        for spare in silent:
            _log.warning("%s was silent for %.0f s; another spare replaces it", spare.name, limits[spare.name])
            self._drop(spare)
        for name in names:
            self._launcher.start("", name, driver, self._ended)

    def close(self, seconds: float) -> None:
        """Let all spares leave, and cancel those that do not."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, {}
        for spare in waiting.values():
            try:
                if spare.peer is None:
                    self._launcher.cancel(spare.name)
                else:
                    spare.peer.call("leave", {}, _LEAVE_SECONDS)
            except (PeerUnavailable, Refused) as error:
                _log.info("%s does not answer: %s", spare.name, error)
        for late in self._launcher.wait(list(waiting), seconds):
            self._launcher.cancel(late)
        for spare in waiting.values():
            if spare.peer is not None:
                spare.peer.close()

    def _limit_seconds(self, spare: _Spare) -> float:
        settings = self._context.settings
        return settings.node_start_seconds if spare.peer is None else settings.node_timeout_seconds

    def _assign(self, spare: _Spare, node: str, incarnation: str, ended: Ended) -> None:
        assert spare.peer is not None  # noqa: S101 - for the type checker; only spares that are ready get here
        try:
            spare.peer.call("become", {"node": node, "incarnation": incarnation}, _ASSIGN_SECONDS)
        except (PeerUnavailable, Refused) as error:
            _log.warning("%s did not become %s: %s", spare.name, incarnation, error)
            with self._lock:
                self._named.pop(spare.name, None)  # if it still waits for a name, its next report is refused
            self._launcher.cancel(spare.name)
            ended(node, incarnation, f"its spare did not take the name: {error}", False)
        finally:
            spare.peer.close()

    def _drop(self, spare: _Spare) -> None:
        self._launcher.cancel(spare.name)
        if spare.peer is not None:
            spare.peer.close()
            self._changed(self.ready)

    def _ended(self, _: str, name: str, reason: str, failed: bool) -> None:
        with self._lock:
            named, spare = self._named.pop(name, None), self._waiting.pop(name, None)
        if named is not None:
            named.ended(named.node, named.incarnation, reason, failed)
        elif spare is not None:
            _log.warning("%s ended: %s; another spare replaces it", name, reason)
            self._changed(self.ready)

    def _process_of(self, incarnation: str) -> str:
        """Return the name under which the launcher knows an incarnation: that of the spare that became it, if any."""
        with self._lock:
            return next((name for name, one in self._named.items() if one.incarnation == incarnation), incarnation)
