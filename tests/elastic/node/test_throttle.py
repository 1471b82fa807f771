"""Copies for which no result waits: how many bytes per second they get."""

import threading

import pytest

from elastic import threads
from elastic.node.throttle import CatchUpPace, CopyThrottle


class Clock:
    """Time that passes only while a copy waits."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.is_closing = False

    def wait(self, seconds: float) -> bool:
        if not self.is_closing:
            self.now += seconds
        return self.is_closing


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(threads, "monotonic", lambda: clock.now)
    return clock


def test_copies_get_so_many_bytes_per_second_and_the_first_does_not_wait(clock: Clock) -> None:
    throttle = CopyThrottle(100.0, clock)  # type: ignore[arg-type]
    throttle.wait_for(500)
    assert clock.now == 1_000.0
    for _ in range(10):
        throttle.wait_for(100)
    assert clock.now == pytest.approx(1_000.0 + 5.0 + 9.0)


def test_an_idle_time_is_not_saved_up(clock: Clock) -> None:
    throttle = CopyThrottle(100.0, clock)  # type: ignore[arg-type]
    throttle.wait_for(100)
    clock.now += 60.0
    throttle.wait_for(100)
    began = clock.now
    throttle.wait_for(100)
    assert clock.now == pytest.approx(began + 1.0)


def test_zero_does_not_limit_copies(clock: Clock) -> None:
    throttle = CopyThrottle(0, clock)  # type: ignore[arg-type]
    for _ in range(3):
        throttle.wait_for(10**12)
    assert clock.now == 1_000.0


def test_a_copy_that_waits_ends_with_its_node() -> None:
    closing = threading.Event()
    throttle = CopyThrottle(1.0, closing)
    throttle.wait_for(10**6)
    threading.Timer(0.02, closing.set).start()
    throttle.wait_for(1)  # else for eleven days


def test_a_standby_that_catches_up_takes_steps_for_a_quarter_of_the_time(clock: Clock) -> None:
    pace = CatchUpPace(throttled_seconds=10.0)
    assert pace.pause_seconds == 0
    pace.note_step(0.1, is_behind=True)
    assert pace.pause_seconds == pytest.approx(0.3)
    clock.now += 0.3
    assert pace.pause_seconds == 0
    pace.note_step(0.0001, is_behind=True)
    assert pace.pause_seconds == pytest.approx(0.03)


@pytest.mark.usefixtures("clock")
def test_a_standby_that_has_caught_up_does_not_pause() -> None:
    pace = CatchUpPace(throttled_seconds=10.0)
    pace.note_step(0.1, is_behind=False)
    assert pace.pause_seconds == 0


def test_a_standby_that_stays_behind_for_long_pauses_no_more_until_it_falls_behind_again(clock: Clock) -> None:
    pace = CatchUpPace(throttled_seconds=10.0)
    pace.note_step(0.1, is_behind=True)
    clock.now += 11.0
    pace.note_step(0.1, is_behind=True)
    assert pace.pause_seconds == 0
    pace.note_step(0.1, is_behind=False)
    pace.note_step(0.1, is_behind=True)
    assert pace.pause_seconds > 0


def test_a_standby_that_something_else_slows_does_not_pause_but_is_overdue_after_a_while(clock: Clock) -> None:
    pace = CatchUpPace(throttled_seconds=10.0)
    seen = []
    for seconds, is_behind in ((0.0, True), (9.0, True), (1.0, True), (0.0, False)):
        clock.now += seconds
        pace.note_step(0.1, is_behind=is_behind, pauses=False)
        seen.append((pace.pause_seconds, pace.is_overdue))
    assert seen == [(0.0, False), (0.0, False), (0.0, True), (0.0, False)]
