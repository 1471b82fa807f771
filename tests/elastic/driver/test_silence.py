"""A node that was suspended must not conclude that the driver is gone."""

import threading
from typing import Any

import pytest

from elastic.core.messages import Heartbeat
from elastic.node.link import DriverLink
from elastic.wire import PeerUnavailable

HEARTBEAT_REPORT = Heartbeat("node-1", "node-1.1")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class DeafDriver:
    """Answers nothing; every call takes as long as the script says, by the test's clock."""

    def __init__(self, clock: Clock, script: list[float]) -> None:
        self.address = "driver:0"
        self.script = script
        self.calls = 0
        self._clock = clock

    def call(self, _kind: str, _document: dict[str, Any]) -> None:
        self._clock.now += self.script[self.calls] if self.calls < len(self.script) else 1.0
        self.calls += 1
        raise PeerUnavailable("it does not answer")


@pytest.mark.parametrize("suspended", [0.0, 500.0])
def test_a_node_that_was_suspended_waits_for_the_driver_as_long_as_any_other(suspended: float) -> None:
    clock = Clock()
    driver: Any = DeafDriver(clock, [1.0, 1.0, 1.0 + suspended])
    left = threading.Event()
    why: list[str] = []
    calls: list[int] = []  # until the node left

    def leave(reason: str) -> None:
        why.append(reason)
        calls.append(driver.calls)
        left.set()

    link = DriverLink(
        driver, lambda: HEARTBEAT_REPORT, leave, heartbeat_seconds=0.001, silence_seconds=60.0, clock=clock
    )
    link.start()
    assert left.wait(20)
    link.close()
    assert set(why) == {"the driver was silent for 60 s"}  # repeated until the node has left
    # A suspension is seen up to the time that a call may take: the node then leaves that much sooner.
    assert 48 <= calls[0] <= 62
