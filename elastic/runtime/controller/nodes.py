"""The nodes as the controller reaches them: launched through Spark, listened to and spoken to over Flight."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from elastic.runtime.controller.outbox import Outbox
from elastic.runtime.protocol import Adopt, Apply, Forget, Message, Release, Snapshot
from elastic.runtime.wire import Endpoint, Peer, Refused

_log = logging.getLogger(__name__)
_MESSAGES = {Adopt: "adopt", Apply: "apply", Snapshot: "snapshot", Release: "release", Forget: "forget"}
Heard = Callable[[dict[str, Any]], None]
Ended = Callable[[str, str, str, bool], None]  # node, incarnation, why, whether by an error of its own


class Launcher(Protocol):
    """Starts and ends incarnations somewhere; `ended` is called when one is over."""

    def start(self, node: str, incarnation: str, controller: str, ended: Ended) -> None: ...

    def cancel(self, incarnation: str) -> None:
        """End it if it still runs; it may be silent, slow or not started."""
        ...

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        """Wait until they are over; those that are not."""
        ...


@dataclass
class _Known:
    """The incarnation of a node that counts."""

    incarnation: str
    started: float
    heard: float | None = None
    address: str = ""
    pid: int = 0
    outbox: Outbox | None = None
    pulse: dict[str, Any] = field(default_factory=dict)
    pulsed: float = 0.0


class Nodes:
    """All nodes of a job. Safe to use from many threads."""

    def __init__(
        self,
        names: Sequence[str],
        launcher: Launcher,
        *,
        host: str,
        token: str,
        node_timeout_seconds: float,
        node_start_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = tuple(names)  # at the start
        self._launcher = launcher
        self._host = host
        self._token = token
        self._timeout = node_timeout_seconds
        self._start_seconds = node_start_seconds
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        self._endpoint: Endpoint | None = None
        self._ended: Ended = lambda *_: None

    def listen(self, *, joined: Heard, ended: Ended, **reports: Heard) -> None:
        """Open the controller's own endpoint; reports of incarnations that do not count are refused."""
        self._ended = ended

        def hear(document: dict[str, Any], tell: Heard) -> str:
            self._note(document)
            tell(document)
            return "heard"

        def hear_joined(document: dict[str, Any]) -> str:
            self._welcome(document)
            joined(document)
            return "heard"

        actions: dict[str, Callable[[dict[str, Any]], Any]] = {
            kind: lambda document, tell=tell: hear(document, tell)  # type: ignore[misc]
            for kind, tell in reports.items()
        }
        actions["joined"] = hear_joined
        actions["pulse"] = lambda document: hear(document, self._pulse)
        self._endpoint = Endpoint(self._host, self._token, actions)

    def start(self, node: str, incarnation: str) -> None:
        """Start an incarnation in the place of the one before."""
        with self._lock:
            before = self._known.get(node)
            self._known[node] = _Known(incarnation, self._clock())
        if before is not None:
            self._drop(before)
        assert self._endpoint is not None  # noqa: S101 - for the type checker; listen comes first
        self._launcher.start(node, incarnation, self._endpoint.address, self._ended)

    def stop(self, node: str, incarnation: str) -> None:
        """Let a node leave, gracefully if it hears."""
        with self._lock:
            known = self._known.pop(node, None)
        if known is not None and known.outbox is not None:
            known.outbox.send("stop", {})
            known.outbox.close_when_sent()
        elif known is not None:
            self._cancel(incarnation)

    def wait_for_end(self, incarnations: Sequence[str], graceful_seconds: float = 10.0) -> None:
        """Of those that were told to leave; who does not is ended."""
        for incarnation in self._launcher.wait(incarnations, graceful_seconds):
            self._cancel(incarnation)
        if late := self._launcher.wait(incarnations, graceful_seconds):
            _log.warning("%s did not end; they will be refused when they speak", ", ".join(late))

    def send(self, node: str, incarnation: str, message: Message) -> None:
        with self._lock:
            known = self._known.get(node)
            if known is not None and known.incarnation == incarnation and known.outbox is not None:
                known.outbox.send(_MESSAGES[type(message)], message.to_json())

    def call(self, node: str, action: str, document: dict[str, Any]) -> Any:
        """Ask a node directly. Raises `Refused` or `PeerUnavailable`, `KeyError` if it is not up."""
        with self._lock:
            outbox = self._known[node].outbox
        if outbox is None:
            raise KeyError(node)
        return outbox.peer.call(action, document)

    def silent(self, paused_seconds: float = 0.0) -> list[tuple[str, str, str]]:
        """Incarnations that were not heard of for too long, with the reason.

        `paused_seconds` is how long the driver itself did not run since the last call; it extends every deadline.
        """
        now = self._clock()
        found = []
        with self._lock:
            for node, known in self._known.items():
                known.started = min(now, known.started + paused_seconds)
                known.heard = None if known.heard is None else min(now, known.heard + paused_seconds)
                if known.heard is None and now - known.started > self._start_seconds:
                    found.append((node, known.incarnation, f"did not start within {self._start_seconds:g} s"))
                elif known.heard is not None and now - known.heard > self._timeout:
                    found.append((node, known.incarnation, f"silent for {now - known.heard:.1f} s"))
        return found

    def next_timer_ms(self, newest_batch: int) -> int | None:
        """When the earliest processing-time timer is due, as told by nodes that have applied the newest batch."""
        with self._lock:
            heartbeats = [known.pulse for known in self._known.values()]
        due = [
            heartbeat["next_timer_ms"]
            for heartbeat in heartbeats
            if heartbeat.get("done_batch", -1) >= newest_batch and heartbeat.get("next_timer_ms") is not None
        ]
        return min(due, default=None)

    def has_joined(self, node: str, incarnation: str) -> bool:
        """Whether this incarnation counts and has come up."""
        with self._lock:
            known = self._known.get(node)
            return known is not None and known.incarnation == incarnation and known.outbox is not None

    @property
    def count(self) -> int:
        """How many nodes are wanted now, started or starting."""
        with self._lock:
            return len(self._known)

    def addresses(self) -> dict[str, str]:
        with self._lock:
            return {node: known.address for node, known in self._known.items() if known.address}

    def status(self) -> dict[str, dict[str, Any]]:
        with self._lock:
            return {
                node: {
                    "incarnation": known.incarnation,
                    "address": known.address,
                    "pid": known.pid,
                    **{name: value for name, value in known.pulse.items() if name not in ("node", "incarnation")},
                    "step": _aged(known.pulse.get("step"), known.pulsed),
                }
                for node, known in self._known.items()
            }

    def close(self, graceful_seconds: float = 10.0) -> list[str]:
        """Ask every node to leave, wait, and cancel those that did not; these are returned."""
        with self._lock:
            known = list(self._known.values())
            self._known.clear()
        for one in known:
            if one.outbox is not None:
                one.outbox.send("stop", {})
        late = self._launcher.wait([one.incarnation for one in known], graceful_seconds)
        for incarnation in late:
            self._cancel(incarnation)
        for one in known:
            if one.outbox is not None:
                one.outbox.close()
        if self._endpoint is not None:
            self._endpoint.close()
        return late

    def _drop(self, known: _Known) -> None:
        if known.outbox is not None:
            known.outbox.close()
        self._cancel(known.incarnation)

    def _note(self, document: dict[str, Any]) -> None:
        with self._lock:
            known = self._known.get(document["node"])
            if known is None or known.incarnation != document["incarnation"]:
                raise Refused(f"{document['incarnation']} does not count any more")
            known.heard = self._clock()

    def _welcome(self, document: dict[str, Any]) -> None:
        self._note(document)
        with self._lock:
            known = self._known[document["node"]]
            if known.outbox is None:
                known.address, known.pid = document["address"], document["pid"]
                peer = Peer(document["address"], self._token)
                known.outbox = Outbox(document["node"], peer, partial(self._refused, known.incarnation))

    def _refused(self, incarnation: str, node: str, why: str) -> None:
        """An incarnation that did not take a command has a gap in its commands: another one takes its place."""
        self._ended(node, incarnation, why, False)
        self._cancel(incarnation)

    def _cancel(self, incarnation: str) -> None:
        try:
            self._launcher.cancel(incarnation)
        except Exception as error:  # noqa: BLE001 - Spark raises many types, also because its JVM is gone
            _log.warning("%s could not be cancelled: %s", incarnation, error)

    def _pulse(self, document: dict[str, Any]) -> None:
        with self._lock:
            known = self._known.get(document["node"])
            if known is not None and known.incarnation == document["incarnation"]:
                known.pulse, known.pulsed = document, time.monotonic()


def _aged(step: dict[str, Any] | None, since: float) -> dict[str, Any] | None:
    """The step of a heartbeat as of now: it has been running since, as far as is known."""
    return None if step is None else {**step, "seconds": step["seconds"] + time.monotonic() - since}
