"""Silence and suspension: who did not run cannot have heard, and must not conclude that others are gone."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from elastic.runtime.controller.nodes import Ended, Nodes
from elastic.runtime.node.reports import Reports
from elastic.runtime.pauses import PauseMeter
from elastic.runtime.wire import Peer, PeerUnavailable, wire_token
from storage import Secret

TOKEN = wire_token(Secret.of("a secret of this test"), "life 1")
HEARTBEAT, TIMEOUT = 0.5, 10.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class NoLauncher:
    """Starts nothing, and remembers where nodes would find the controller."""

    def __init__(self) -> None:
        self.controller = ""

    def start(self, _node: str, _incarnation: str, controller: str, _ended: Ended) -> None:
        self.controller = controller

    def cancel(self, incarnation: str) -> None: ...

    def wait(self, _incarnations: Sequence[str], _seconds: float) -> list[str]:
        return []


class Driver:
    """The nodes of a driver that looks at them once in a heartbeat, by a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        launcher = NoLauncher()
        self.nodes = Nodes(
            ["node-1"],
            launcher,
            host="127.0.0.1",
            token=TOKEN,
            node_timeout_seconds=TIMEOUT,
            node_start_seconds=60.0,
            clock=self.clock,
        )
        self.nodes.listen(joined=lambda _: None, ended=lambda *_: None)
        self.nodes.start("node-1", "node-1.1")
        self.node = Peer(launcher.controller, TOKEN)
        self._pauses = PauseMeter(2 * HEARTBEAT, self.clock)

    def hear(self, kind: str) -> None:
        facts = {"node": "node-1", "incarnation": "node-1.1", "address": "127.0.0.1:1", "pid": 1}
        self.node.call(kind, facts)

    def look_after(self, seconds: float) -> list[str]:
        """Reasons why nodes count as lost, at a look that comes so much later than the one before."""
        self.clock.now += seconds
        return [why for _, _, why in self.nodes.silent(self._pauses.measure())]

    def looks(self, seconds: float) -> list[str]:
        return [why for _ in range(round(seconds / HEARTBEAT)) for why in self.look_after(HEARTBEAT)]


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.node.close()
    driver.nodes.close()


def test_a_driver_that_was_suspended_for_12_s_does_not_declare_its_nodes_lost(driver: Driver) -> None:
    driver.hear("joined")
    assert driver.looks(5.0) == []
    driver.hear("pulse")
    assert driver.look_after(12.0) == []
    assert driver.looks(TIMEOUT - 3 * HEARTBEAT) == []
    assert driver.looks(4 * HEARTBEAT) != []  # it is silent indeed


def test_a_driver_that_is_always_a_little_late_still_notices_a_lost_node(driver: Driver) -> None:
    driver.hear("joined")
    late = [why for _ in range(20) for why in driver.look_after(4 * HEARTBEAT)]
    assert late != []


def test_a_node_that_starts_gets_the_time_in_which_the_driver_was_suspended(driver: Driver) -> None:
    assert driver.looks(50.0) == []
    assert driver.look_after(30.0) == []
    assert driver.looks(8.0) == []
    assert "did not start within 60 s" in driver.looks(3.0)[0]


class DeafController:
    """Answers nothing; every call takes as long as the script says, by the test's clock."""

    def __init__(self, clock: Clock, script: list[float]) -> None:
        self.script = script
        self.calls = 0
        self._clock = clock

    def call(self, _kind: str, _document: dict[str, Any]) -> None:
        self._clock.now += self.script[self.calls] if self.calls < len(self.script) else 1.0
        self.calls += 1
        raise PeerUnavailable("it does not answer")


@pytest.mark.parametrize("suspended", [0.0, 500.0])
def test_a_node_that_was_suspended_waits_for_the_controller_as_long_as_any_other(suspended: float) -> None:
    clock = Clock()
    controller: Any = DeafController(clock, [1.0, 1.0, 1.0 + suspended])
    left = threading.Event()
    why: list[str] = []

    def leave(reason: str) -> None:
        why.append(reason)
        left.set()

    reports = Reports(controller, dict, leave, pulse_seconds=0.001, silence_seconds=60.0, clock=clock)
    reports.start()
    assert left.wait(20)
    reports.close()
    assert why == ["the controller was silent for 60 s"]
    # A suspension is seen up to the time that a call may take: the node then leaves that much sooner.
    assert 48 <= controller.calls <= 62
