"""The driver's connections to its nodes: it launches them, receives their reports and sends them commands."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elastic import threads
from elastic.core.events import Event, NodeLost, SparesChanged
from elastic.core.messages import (
    LeaveJob,
    NodeCommand,
    NodeJoined,
    NodeReport,
    SpareReady,
    decode_message,
    encode_message,
)
from elastic.driver.context import JobContext
from elastic.driver.launcher import Launcher
from elastic.driver.liveness import ConnectionWatch
from elastic.driver.spares import Spares
from elastic.wire import Endpoint, Peer, Refused
from elastic.wire.reliable_sender import ReliableSender

_log = logging.getLogger(__name__)


@dataclass
class _Link:
    """The current incarnation of a node."""

    incarnation: str
    started: float
    heard: float | None = None
    peer: Peer | None = None
    sender: ReliableSender | None = None
    watch: ConnectionWatch | None = None


class NodeLinks:
    """All nodes of a job. Safe to use from many threads; what nodes report is posted as events."""

    def __init__(self, context: JobContext, launcher: Launcher, post: Callable[[Event, str], object]) -> None:
        self._context = context
        self._spares = Spares(context, launcher, lambda ready: post(SparesChanged(ready), ""))
        self._launcher: Launcher = self._spares
        self._post = post
        self._links: dict[str, _Link] = {}
        self._lock = threads.Lock()
        self._endpoint: Endpoint | None = None

    def listen(self) -> None:
        """Open the driver's endpoint; it refuses reports of incarnations that are not current."""
        self._endpoint = self._context.network.listen(
            self._context.host, self._context.token, {"report": self._receive}
        )

    def start(self, node: str, incarnation: str) -> None:
        """Start an incarnation in the place of the one before."""
        with self._lock:
            before = self._links.get(node)
            self._links[node] = _Link(incarnation, threads.monotonic())
        assert self._endpoint is not None  # noqa: S101 - for the type checker; `listen` comes first
        self._launcher.start(node, incarnation, self._endpoint.address, self._ended)
        if before is not None:
            self._close_link(before)
            self._cancel(before.incarnation)

    def stop(self, node: str, incarnation: str) -> None:
        """Ask a node to leave if it can be reached, else cancel it."""
        with self._lock:
            link = self._links.pop(node, None)
        if link is not None and link.sender is not None:
            if link.watch is not None:
                link.watch.close()
            link.sender.send(encode_message(LeaveJob()))
            link.sender.finish()
        elif link is not None:
            self._cancel(incarnation)

    def wait_for_end(self, incarnations: Sequence[str], graceful_seconds: float = 10.0) -> None:
        """Wait for nodes that were asked to leave, and cancel those that do not."""
        for incarnation in self._launcher.wait(incarnations, graceful_seconds):
            self._cancel(incarnation)
        if late := self._launcher.wait(incarnations, graceful_seconds):
            _log.warning("%s did not end; the driver refuses their reports", ", ".join(late))

    def send(self, node: str, incarnation: str, message: NodeCommand, cause: str) -> None:
        document = encode_message(replace(message, cause=cause))
        with self._lock:
            link = self._links.get(node)
            if link is not None and link.incarnation == incarnation and link.sender is not None:
                link.sender.send(document)

    def call(self, node: str, action: str, document: dict[str, Any]) -> Any:
        """Call a node directly. Raises `Refused` or `PeerUnavailable`, `KeyError` if the node has not joined."""
        with self._lock:
            peer = self._links[node].peer
        if peer is None:
            raise KeyError(node)
        return peer.call(action, document)

    def overdue(self, paused_seconds: float = 0.0) -> list[NodeLost]:
        """Return the incarnations whose heartbeats are overdue.

        `paused_seconds` is how long the driver itself did not run since the last call; it extends every deadline.
        """
        now, settings = threads.monotonic(), self._context.settings
        found = []
        with self._lock:
            for node, link in self._links.items():
                link.started = min(now, link.started + paused_seconds)
                link.heard = None if link.heard is None else min(now, link.heard + paused_seconds)
                if link.heard is None and now - link.started > settings.node_start_seconds:
                    reason = f"did not start within {settings.node_start_seconds:g} s"
                    found.append(NodeLost(node, link.incarnation, reason))
                elif link.heard is not None and now - link.heard > settings.node_timeout_seconds:
                    found.append(NodeLost(node, link.incarnation, f"silent for {now - link.heard:.1f} s"))
        return found

    def replenish_spares(self, paused_seconds: float = 0.0) -> None:
        """Start spares in the place of those that were used, when all nodes have joined: nodes need slots first.

        `paused_seconds` is as for `overdue`.
        """
        with self._lock:
            are_starting = any(link.heard is None for link in self._links.values())
        if not are_starting and self._endpoint is not None:
            self._spares.replenish(self._endpoint.address, paused_seconds)

    def close(self, graceful_seconds: float = 10.0) -> list[str]:
        """Ask every node to leave, wait, and cancel those that did not; return these."""
        with self._lock:
            links = list(self._links.values())
            self._links.clear()
        for link in links:
            if link.sender is not None:
                link.sender.send(encode_message(LeaveJob()))
        self._spares.close(graceful_seconds / 4)
        late = self._launcher.wait([link.incarnation for link in links], graceful_seconds)
        for incarnation in late:
            self._cancel(incarnation)
        for link in links:
            self._close_link(link)
        if self._endpoint is not None:
            self._endpoint.close()
        return late

    def _receive(self, document: dict[str, Any]) -> str:
        """Handle a report of a node, in a thread of the endpoint."""
        report = decode_message(document)
        assert isinstance(report, NodeReport)  # noqa: S101 - for the type checker; the token is the job's own
        if isinstance(report, SpareReady):
            self._spares.note(report)
            return "received"
        self._note(report)
        if isinstance(report, NodeJoined):
            self._connect(report)
        self._post(report, report.cause)
        return "received"

    def _note(self, report: NodeReport) -> None:
        with self._lock:
            link = self._links.get(report.node)
            if link is None or link.incarnation != report.incarnation:
                raise Refused(f"{report.incarnation} is not the current incarnation of {report.node}")
            link.heard = threads.monotonic()

    def _connect(self, joined: NodeJoined) -> None:
        with self._lock:
            link = self._links.get(joined.node)
            if link is None or link.incarnation != joined.incarnation or link.sender is not None:
                return
            peer = link.peer = self._context.network.connect(joined.address, self._context.token)

            def refused(error: Refused) -> None:
                """Replace an incarnation that refused a command: it has a gap in its commands."""
                _log.error("%s refused a command: %s", joined.incarnation, error)
                self._ended(joined.node, joined.incarnation, f"it refused a command: {error}", False)
                self._cancel(joined.incarnation)

            link.sender = ReliableSender(
                peer, "command", f"commands-{joined.node}", on_refused=refused, on_end=peer.close
            )
            link.sender.start()
            link.watch = ConnectionWatch(
                peer,
                joined.incarnation,
                lambda reason: self._ended(joined.node, joined.incarnation, reason, False),
                longest_pause_seconds=self._context.settings.heartbeat_seconds,
            )
            link.watch.start()

    def _ended(self, node: str, incarnation: str, reason: str, failed: bool) -> None:
        self._post(NodeLost(node, incarnation, reason, failed), "")

    def _close_link(self, link: _Link) -> None:
        if link.watch is not None:
            link.watch.close()
        if link.sender is not None:
            link.sender.close()

    def _cancel(self, incarnation: str) -> None:
        try:
            self._launcher.cancel(incarnation)
        except Exception as error:  # noqa: BLE001 - Spark raises many types, also because its JVM is gone
            _log.warning("%s could not be cancelled: %s", incarnation, error)
