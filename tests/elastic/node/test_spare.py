"""A spare, from its start until it gets a name or leaves."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from elastic.core.messages import SpareReady
from elastic.node.spare import Spare
from elastic.operators import Stage
from elastic.wire import Peer, Refused
from tests.elastic.node.context import TOKEN, describe, spec_of
from tests.elastic.node.network import CuttableNetwork
from tests.elastic.node.operators import History
from tests.elastic.node.scripted_driver import ScriptedDriver

NAME = {"node": "node-3", "incarnation": "node-3.7.9"}


class RunningSpare:
    """A spare that waits in a thread, and the driver's connection to it."""

    def __init__(self, **settings: Any) -> None:
        self.network = CuttableNetwork()
        self.driver = ScriptedDriver(self.network)
        spec = spec_of(describe([Stage(History(), ("key",))]), driver=self.driver.endpoint.address, **settings)
        self.spare = Spare(replace(spec, node="", incarnation="spare-1"), self.network)
        self.over = self.spare._over
        self.named: list[Any] = []
        self.thread = threading.Thread(target=lambda: self.named.append(self.spare.wait()))
        self.thread.start()
        [ready] = self.driver.wait_for(SpareReady)[:1]
        assert (ready.node, ready.incarnation) == ("", "spare-1")
        self.peer: Peer = self.network.connect(ready.address, TOKEN)

    def join(self) -> Any:
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.named[0]


@pytest.fixture
def start() -> Iterator[Callable[..., RunningSpare]]:
    started: list[RunningSpare] = []

    def begin(**settings: Any) -> RunningSpare:
        started.append(RunningSpare(**settings))
        return started[-1]

    yield begin
    for one in started:
        one.spare.kill()
        one.over.set()
        one.join()


def test_a_spare_becomes_the_node_that_it_is_told_and_keeps_everything_else(start: Any) -> None:
    running = start()
    assert running.peer.call("become", NAME) == "accepted"
    named = running.join()
    assert (named.node, named.incarnation) == ("node-3", "node-3.7.9")
    assert replace(named, node="", incarnation="spare-1") == running.spare._spec
    assert running.spare.left is None


def test_a_spare_takes_one_name_only_however_often_it_is_told(start: Any) -> None:
    running = start()
    running.spare._over = threading.Event()  # it is slow to become the node
    running.peer.call("become", NAME)
    running.peer.call("become", NAME)
    with pytest.raises(Refused, match="another name"):
        running.peer.call("become", {"node": "node-4", "incarnation": "node-4.7.9"})
    running.peer.call("leave", {})
    assert running.spare._named is not None
    assert running.spare._named.node == "node-3"
    assert running.spare.left is None


def test_a_spare_that_leaves_takes_no_name(start: Any) -> None:
    running = start()
    running.spare._over = threading.Event()  # it is slow to leave
    running.peer.call("leave", {})
    with pytest.raises(Refused, match="leaves"):
        running.peer.call("become", NAME)
    assert running.spare._named is None


def test_a_spare_leaves_when_it_is_told_when_it_is_refused_and_when_the_driver_is_gone(start: Any) -> None:
    told, refused, alone = start(), start(), start(node_timeout_seconds=0.02)
    told.peer.call("leave", {})
    assert told.join() is None
    refused.driver.refuses = True
    assert refused.join() is None
    assert "was replaced" in str(refused.spare.left)
    alone.driver.endpoint.close()
    assert alone.join() is None
    assert "silent" in str(alone.spare.left)


def test_a_stranger_without_the_token_names_no_spare(start: Any) -> None:
    running = start()
    stranger = running.network.connect(running.peer.address, "another token")
    with pytest.raises(Exception, match="token"):
        stranger.call("become", NAME)
    assert running.spare._named is None
