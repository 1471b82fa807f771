"""The memory budget: never over it, never stuck, first come first served."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from storage.errors import InvalidStorageInput
from storage.state.budget import ByteBudget

TIMEOUT_SECONDS = 10.0  # seconds; reached only by a deadlock


class Flights:
    """Sizes that hold a grant right now, and the most there ever was."""

    def __init__(self, capacity: int) -> None:
        self.budget = ByteBudget(capacity)
        self._lock = threading.Lock()
        self._now: list[int] = []
        self.over: list[list[int]] = []  # moments with too much in flight that was not one item alone

    def fly(self, size: int, true_size: int) -> int:
        with self.budget.reserve(size) as grant:
            with self._lock:
                self._now.append(size)
                if sum(self._now) > self.budget.capacity and len([one for one in self._now if one]) > 1:
                    self.over.append(list(self._now))
            grant.resize(min(size, true_size))
            with self._lock:
                self._now.remove(size)
        return size


@settings(max_examples=max(30, settings().max_examples // 2))
@given(st.integers(1, 100), st.lists(st.tuples(st.integers(0, 150), st.integers(0, 150)), max_size=40))
def test_the_budget_is_never_exceeded_unless_by_one_item_alone_and_all_get_through(
    capacity: int, items: list[tuple[int, int]]
) -> None:
    flights = Flights(capacity)
    with ThreadPoolExecutor(8) as executor:
        flown = [executor.submit(flights.fly, *item) for item in items]
        assert [future.result(TIMEOUT_SECONDS) for future in flown] == [size for size, _ in items]
    assert flights.over == []
    assert flights.budget.used == 0
    assert flights.budget.peak <= max([capacity, *(size for size, _ in items)])


def test_a_large_item_is_not_overtaken_for_ever_by_small_ones() -> None:
    budget = ByteBudget(10)
    order: list[str] = []

    def queue(name: str, size: int) -> None:
        with budget.reserve(size):
            order.append(name)

    with ThreadPoolExecutor(4) as executor:
        with budget.reserve(5):
            queued = [executor.submit(queue, "large", 10)]
            wait_until(lambda: len(budget._queue) == 1)
            queued += [executor.submit(queue, "small", 1), executor.submit(queue, "tiny", 0)]
            wait_until(lambda: len(budget._queue) == 3)
            assert order == []
        for future in queued:
            future.result(TIMEOUT_SECONDS)
    assert order[0] == "large"


def test_a_size_that_turns_out_larger_keeps_others_out_and_does_not_wait() -> None:
    budget = ByteBudget(10)
    with ThreadPoolExecutor(1) as executor:
        with budget.reserve(2) as grant:
            grant.resize(50)
            other = executor.submit(take, budget, 1)
            wait_until(lambda: len(budget._queue) == 1)
            assert not other.done()
        assert other.result(TIMEOUT_SECONDS) == 1
    assert (budget.used, budget.peak) == (0, 50)


def test_bytes_are_released_when_the_work_fails() -> None:
    budget = ByteBudget(10)
    with pytest.raises(KeyError), budget.reserve(10):
        raise KeyError
    assert budget.used == 0


def test_a_budget_without_bytes_is_refused() -> None:
    with pytest.raises(InvalidStorageInput, match="at least one byte"):
        ByteBudget(0)


def take(budget: ByteBudget, size: int) -> int:
    """Take the size alone, and say how much was in use then."""
    with budget.reserve(size):
        return budget.used


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
