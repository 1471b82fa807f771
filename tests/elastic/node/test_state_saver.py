"""Captured states on their way to the store: few at a time, and without slowing down the stream."""

import os
import threading
import time

import pytest

from elastic import threads
from elastic.core.ids import Batch, UnitId
from elastic.core.unit_host import Capture
from elastic.node.state_saver import StateSaver
from storage.state import PackedState, StateManager, StateRef
from tests.elastic.node.states import LEASE


def test_large_states_are_captured_one_at_a_time(manager: StateManager) -> None:
    go, woken = threading.Event(), threading.Event()
    saver = StateSaver(manager, woken.set, "test", at_once=4)

    def store(one: PackedState) -> StateRef:
        assert go.wait(10)
        return one.ref

    small = [saver.pack(Capture(UnitId(0, task), b"small", Batch(3)), LEASE, store) for task in range(2)]
    room = [saver.has_room]
    large = saver.pack(Capture(UnitId(0, 2), bytes(65 << 20), Batch(3)), LEASE, store)
    room.append(saver.has_room)
    go.set()
    assert [future.result(10).unit.number for future in (*small, large)] == [0, 1, 2]
    room.append(saver.has_room)
    assert room == [True, False, True]
    assert woken.wait(10)
    saver.close()


class SlowStore:
    """Takes a tenth of a second for each packed state, and remembers at which priority."""

    def __init__(self) -> None:
        self.niceness: list[int] = []

    def __call__(self, one: PackedState) -> StateRef:
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        time.sleep(0.1)
        return one.ref


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list that collects the pauses of savers, which take no time in this test."""
    found: list[float] = []
    monkeypatch.setattr(threads, "sleep", found.append)
    return found


def test_a_throttled_saver_pauses_as_long_as_it_worked_and_lowers_its_priority(
    manager: StateManager, pauses: list[float]
) -> None:
    saver, store = StateSaver(manager, lambda: None, "test", at_once=1, throttled_seconds=60), SlowStore()
    for future in [saver.pack(Capture(UnitId(0, task), b"small", Batch(3)), LEASE, store) for task in range(2)]:
        future.result(10)
    assert pauses[0] == 0.0
    assert pauses[1] >= 0.1
    assert min(store.niceness) > os.getpriority(os.PRIO_PROCESS, 0)
    saver.close()


def test_a_saver_that_was_throttled_for_long_enough_is_not_until_the_next_lease(
    manager: StateManager, pauses: list[float]
) -> None:
    saver, store = StateSaver(manager, lambda: None, "test", at_once=1, throttled_seconds=0.05), SlowStore()
    for task, lease in enumerate([LEASE, LEASE, "000000000002-000000002-cd"]):
        saver.pack(Capture(UnitId(0, task), b"small", Batch(3)), lease, store).result(10)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert [niceness > own for niceness in store.niceness] == [True, False, True]
    assert len(pauses) == 2
    saver.close()


def niceness_of_snapshots(manager: StateManager, own: int) -> int:
    """Return the niceness at which a node that runs at `own` saves; in a thread, because threads inherit niceness."""
    store = SlowStore()

    def save() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own)
        saver = StateSaver(manager, lambda: None, "test", at_once=1, throttled_seconds=60)
        saver.pack(Capture(UnitId(0, 0), b"small", Batch(3)), LEASE, store).result(10)
        saver.close()

    node = threading.Thread(target=save)
    node.start()
    node.join(10)
    [niceness] = store.niceness
    return niceness


@pytest.mark.parametrize(("own", "expected"), [(5, 15), (12, 19), (19, 19)])
def test_a_saver_lowers_its_priority_from_that_of_its_node_and_never_raises_it(
    manager: StateManager, own: int, expected: int
) -> None:
    assert niceness_of_snapshots(manager, own) == expected


def test_a_node_that_may_not_change_priorities_saves_all_the_same(
    manager: StateManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError("not permitted")

    saver = StateSaver(manager, lambda: None, "test", at_once=1, throttled_seconds=60)
    monkeypatch.setattr(os, "setpriority", refuse)
    assert saver.save(Capture(UnitId(0, 0), b"small", Batch(3)), LEASE).result(10).unit.number == 0
    assert "it cannot be lowered: not permitted" in caplog.text
    saver.close()
