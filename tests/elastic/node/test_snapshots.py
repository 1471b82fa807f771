"""Snapshots on a node: changed units are saved, unchanged ones are named, failed ones are in neither list."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import storage
from elastic.core.ids import Batch, Epoch, UnitId
from elastic.core.messages import ApplyStep, InstallUnits, SnapshotTaken, TakeSnapshot
from elastic.core.pipeline import create_runners
from elastic.core.steps import Position, Step
from elastic.core.unit_host import UnitHost
from elastic.node.snapshots import SnapshotTaker
from elastic.operators import Stage
from storage import Secret
from storage.errors import StoreUnavailable
from storage.state import BatchTime, StateManager
from tests.elastic.node.context import ROWS, Recorder, context_of, describe
from tests.elastic.node.operators import History
from tests.elastic.node.states import LEASE, empty_handle, wait_until

UNITS = tuple(UnitId(0, task) for task in range(3))


def host_after_a_step(*changed: int) -> UnitHost:
    """Return a host of three units that took batch 0, in which these tasks had a row."""
    host = UnitHost(create_runners(describe([Stage(History(), ("key",))]), "fail"))
    step = Step(Position(Batch(0), 0), True, (), BatchTime(0, 0))
    for handle in host.install(InstallUnits(Epoch(1), tuple(map(empty_handle, range(3))), ())).to_load:
        host.set_state(handle, None)
    host.add_step(ApplyStep(Epoch(1), step))
    [ready] = host.ready_steps()
    rows = ROWS.empty_table().from_pylist([{"key": 1, "value": 1}], schema=ROWS)
    host.take(ready, {task: [rows] for task in changed})
    return host


def take_snapshot(snapshots: SnapshotTaker, recorder: Recorder, lease: str = LEASE) -> SnapshotTaken:
    before = len(recorder.reports)
    snapshots.begin(TakeSnapshot(Epoch(1), lease, dict.fromkeys(UNITS, Batch(-1)), cause="e5"))
    wait_until(lambda: not snapshots.advance() and len(recorder.reports) > before)
    report = recorder.reports[-1]
    assert isinstance(report, SnapshotTaken)
    return report


@pytest.fixture
def manager_on() -> Callable[[Any], StateManager]:
    return lambda store: StateManager(store, Secret.of("a secret of this test"), "saved", threads=2)


def test_changed_units_are_saved_and_the_others_reported_as_unchanged(manager_on: Any) -> None:
    recorder, manager = Recorder(), manager_on(storage.open("memory:"))
    snapshots = SnapshotTaker(context_of(recorder), host_after_a_step(0, 2), manager)
    report = take_snapshot(snapshots, recorder)
    assert {ref.unit for ref in report.states} == {UNITS[0], UNITS[2]}
    assert [(one.unit, one.changed, one.through) for one in report.unchanged] == [(UNITS[1], -1, 0)]
    assert (report.lease, report.cause) == (LEASE, "e5")
    assert [manager.load(ref).state for ref in report.states]
    snapshots.close()


def test_a_state_that_the_store_does_not_take_is_in_neither_list_and_in_the_next_snapshot(
    manager_on: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store: Any = storage.open("memory:")
    put = store.put

    def fail_first(key: str, data: Any) -> None:
        if UNITS[0].segment in key and not caplog.records:
            raise StoreUnavailable("memory:", "put", key, "it does not answer")
        put(key, data)

    monkeypatch.setattr(store, "put", fail_first)
    recorder = Recorder()
    snapshots = SnapshotTaker(context_of(recorder), host_after_a_step(0, 1, 2), manager_on(store))
    report = take_snapshot(snapshots, recorder)
    assert {ref.unit for ref in report.states} == {UNITS[1], UNITS[2]}
    assert report.unchanged == ()
    assert "did not save a state, the next snapshot tries again [e5]" in caplog.text
    again = take_snapshot(snapshots, recorder, lease="000000000002-000000002-cd")
    assert {ref.unit for ref in again.states} == set(UNITS)
    snapshots.close()


class PendingSaver:
    """Has room for everything and never finishes."""

    has_room = True

    def save(self, *_: Any) -> Future[Any]:
        return Future()


def test_a_snapshot_is_not_reported_while_a_state_is_being_saved(manager_on: Any) -> None:
    recorder = Recorder()
    snapshots = SnapshotTaker(context_of(recorder), host_after_a_step(0), manager_on(storage.open("memory:")))
    snapshots._saver = PendingSaver()  # type: ignore[assignment]
    snapshots.begin(TakeSnapshot(Epoch(1), LEASE, dict.fromkeys(UNITS, Batch(-1))))
    for _ in range(5):
        snapshots.advance()
    assert recorder.reports == []


def test_a_repeated_command_does_not_start_the_snapshot_again(manager_on: Any) -> None:
    recorder = Recorder()
    snapshots = SnapshotTaker(context_of(recorder), host_after_a_step(0), manager_on(storage.open("memory:")))
    take_snapshot(snapshots, recorder)
    snapshots.begin(TakeSnapshot(Epoch(1), LEASE, dict.fromkeys(UNITS, Batch(-1))))
    assert not snapshots.advance()
    assert len(recorder.reports) == 1
    snapshots.close()
