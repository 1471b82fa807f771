"""A spare: a process that has done everything that takes long, and waits for the name of a node."""

from dataclasses import replace
from os import getpid
from typing import Any

from elastic import threads
from elastic.core.messages import SpareReady
from elastic.core.pipeline import create_runners
from elastic.node.link import DriverLink
from elastic.node.spec import NodeSpec
from elastic.operators.columns import load_kernels
from elastic.wire import FlightNetwork, Network, Refused
from elastic.wire.addresses import find_own_host

SILENT_TIMEOUTS = 6  # node timeouts without an answer after which a process assumes that the driver is gone


class Spare:
    """A spare process, from its construction until it gets a name or leaves; `left` is then why it left.

    It takes at most one name, and none after it has decided to leave: the driver starts an incarnation elsewhere only
    after a refusal or with another name, so no incarnation lives twice.
    """

    def __init__(self, spec: NodeSpec, network: Network | None = None) -> None:
        settings = spec.settings
        self.left: str | None = None
        self._spec = spec
        self._named: NodeSpec | None = None
        self._lock = threads.Lock()
        self._over = threads.Event()
        network = network or FlightNetwork()
        self._driver = network.connect(spec.driver, spec.token)
        self._link = DriverLink(
            self._driver,
            self._ready,
            self._leave,
            heartbeat_seconds=settings.heartbeat_seconds,
            silence_seconds=SILENT_TIMEOUTS * settings.node_timeout_seconds,
        )
        actions = {"become": self._become, "leave": lambda _: self._leave("the driver asked it to leave")}
        self._endpoint = network.listen(spec.host or find_own_host(spec.driver), spec.token, actions)

    def wait(self) -> NodeSpec | None:
        """Get warm, tell the driver, and return the specification of the node to become; None if it leaves instead."""
        self._warm_up()
        self._link.start()
        self._link.report(self._ready())
        self._over.wait()
        # Not before the node runs: an endpoint closes when its calls are answered, and the node must not wait for that.
        threads.Thread(self._close, "close-spare").start()
        return self._named

    def kill(self) -> None:
        """Stop at once, as `kill -9` would; for hosts that run it in a thread."""
        self._leave("it was killed")
        self._endpoint.close()

    def _warm_up(self) -> None:
        """Import what nodes use: operators with the pipeline, the store's library with the store."""
        load_kernels()
        create_runners(self._spec.pipeline, self._spec.settings.on_error)
        self._spec.store.open_when_available(self._spec.settings.node_start_seconds).close()

    def _ready(self) -> SpareReady:
        return SpareReady(self._spec.node, self._spec.incarnation, self._endpoint.address, getpid())

    def _become(self, document: dict[str, Any]) -> str:
        name = replace(self._spec, node=str(document["node"]), incarnation=str(document["incarnation"]))
        with self._lock:
            if self.left is not None or self._named not in (None, name):
                raise Refused(f"{self._spec.incarnation} leaves, or has another name: {self.left or self._named}")
            self._named = name
        self._over.set()
        return "accepted"

    def _leave(self, why: str) -> str:
        with self._lock:
            if self._named is None:
                self.left = self.left or why
        self._over.set()
        return "accepted"

    def _close(self) -> None:
        self._link.close(flush_seconds=0.0)
        self._endpoint.close()
        self._driver.close()
