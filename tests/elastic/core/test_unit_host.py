"""What a node does next: which states it waits for, which steps its units take, and whose output it reports."""

import pyarrow as pa
import pytest

from elastic.core.ids import NO_BATCH, Batch, Epoch, UnitId
from elastic.core.messages import ApplyStep, DropUnits, InstallUnits, ReleaseUnits, TakeSnapshot, UnitHandle
from elastic.core.pipeline import create_runners
from elastic.core.steps import Position, Step
from elastic.core.unit_host import StepResult, UnitHost
from elastic.errors import StateUnavailable
from elastic.operators import Stage
from elastic.routing import Routing, TableGrouping
from migration import Assignment
from storage.state import BatchTime, StateRef
from tests.elastic.node.context import ROWS, describe
from tests.elastic.node.operators import History
from tests.elastic.node.states import LEASE, START, empty_handle, handle_of

ONE, TWO = UnitId(0, 1), UnitId(0, 2)
STATE_KEY = f"operators/moved/state/{LEASE}/task-1-%d-x.state"


def new_host() -> UnitHost:
    return UnitHost(create_runners(describe([Stage(History(), ("key",))]), "fail"))


def step_of(batch: int, round_: int = 0, *, complete: bool = True) -> Step:
    return Step(Position(Batch(batch), round_), complete, (), BatchTime(batch, 0))


def rows_of(*values: int) -> list[pa.Table]:
    return [pa.Table.from_pylist([{"key": 1, "value": value} for value in values], schema=ROWS)]


def install(host: UnitHost, *handles: UnitHandle, epoch: int = 1, steps: tuple[Step, ...] = ()) -> None:
    for handle in host.install(InstallUnits(Epoch(epoch), handles, steps)).to_load:
        assert host.set_state(handle, None)


def take(host: UnitHost, step: Step, *, cause: str = "") -> StepResult | None:
    """Apply a step with one row for each unit, whose value is the batch; None if no unit can take it."""
    host.add_step(ApplyStep(Epoch(1), step, cause=cause))
    ready = next((one for one in host.ready_steps() if one.step.position == step.position), None)
    if ready is None:
        return None
    return host.take(ready, {unit.number: rows_of(step.batch) for unit in ready.units})


def seen(host: UnitHost, unit: UnitId) -> list[int]:
    found: list[int] = host.lookup(unit, (1,)).value
    return found


def test_a_unit_takes_every_step_once_and_in_order() -> None:
    host = new_host()
    install(host, empty_handle(1))
    for batch in (1, 0, 0):
        host.add_step(ApplyStep(Epoch(1), step_of(batch)))
    for batch in (0, 1):
        [ready] = host.ready_steps()
        assert ready.step.batch == batch
        host.take(ready, {ONE.number: rows_of(batch)})
    assert host.ready_steps() == []
    assert take(host, step_of(0)) is None
    assert seen(host, ONE) == [0, 1]


def test_a_unit_waits_for_the_rounds_of_its_batch() -> None:
    host = new_host()
    install(host, empty_handle(1))
    assert take(host, step_of(0, complete=False))
    assert take(host, step_of(1)) is None
    assert take(host, step_of(0, 1))
    assert [ready.step.position for ready in host.ready_steps()] == [Position(Batch(1), 0)]


def test_the_size_of_a_state_is_measured_after_every_round_that_may_have_changed_it() -> None:
    """Keys that move come and go in the last rounds of a batch, perhaps after a heartbeat has measured the others."""
    host, sizes = new_host(), []
    install(host, empty_handle(1))
    for round_ in range(3):
        assert take(host, step_of(0, round_, complete=round_ == 2))
        host.measure_states()
        [unit] = host.statistics()
        sizes.append(unit.state_bytes)
    assert sizes == sorted(set(sizes))


def test_the_output_of_a_step_has_the_cause_of_its_command_and_its_units() -> None:
    host = new_host()
    install(host, empty_handle(1), empty_handle(2))
    result = take(host, step_of(0), cause="e9")
    assert result is not None
    assert (result.units, result.rows, result.cause) == ((ONE, TWO), 2, "e9")
    [first, second] = result.results[0]
    assert [table["_slot"].to_pylist() for table in (first, second)] == [[ONE.number], [TWO.number]]


def test_the_output_of_a_step_is_grouped_as_when_the_step_was_named() -> None:
    host, before, after = new_host(), *(Routing.by_hash(Assignment.even(4, 1), epoch) for epoch in (0, 2))
    handle = empty_handle(1)
    assert host.install(InstallUnits(Epoch(1), (handle,), (step_of(0),), routing=before)).to_load
    host.set_state(handle, None)
    host.add_step(ApplyStep(Epoch(1), step_of(1)))
    host.add_step(ApplyStep(Epoch(2), step_of(2), after))
    host.add_step(ApplyStep(Epoch(2), step_of(3)))
    found = [host.take(ready, {}).routing for _ in range(4) for ready in host.ready_steps()]
    assert found == [before, before, after, after]


def test_groupings_hold_from_the_step_on_that_they_come_with() -> None:
    host, before = new_host(), Routing.by_hash(Assignment.even(4, 1), 1)
    install(host, empty_handle(1))
    host.add_step(ApplyStep(Epoch(1), step_of(0), before))
    host.add_step(ApplyStep(Epoch(2), step_of(1), before.with_groupings((TableGrouping(),), 2)))
    epochs = []
    for _ in range(2):
        [ready] = host.ready_steps()
        host.take(ready, {})
        epochs.append(host.groupings_epoch)
    assert epochs == [0, 2]


def test_output_that_was_reported_before_is_dropped_and_counted_as_replayed() -> None:
    host = new_host()
    reported = UnitHandle(ONE, None, NO_BATCH, Position(Batch(1), 0))
    install(host, reported, empty_handle(2))
    results = [take(host, step_of(batch)) for batch in range(3)]
    assert [result.units for result in results if result] == [(TWO,), (TWO,), (ONE, TWO)]
    assert [result.rows for result in results if result] == [1, 1, 2]
    assert [len(result.results[0]) for result in results if result] == [1, 1, 2]
    assert host.replayed_rows == 2
    assert seen(host, ONE) == [0, 1, 2]


def test_a_unit_that_is_being_loaded_takes_another_state_and_then_only_that_one() -> None:
    host = new_host()
    offered, saved = (StateRef(STATE_KEY % batch, ONE, batch, 10, LEASE) for batch in (7, 4))
    [first] = host.install(InstallUnits(Epoch(1), (handle_of(offered),), ())).to_load
    assert host.install(InstallUnits(Epoch(1), (handle_of(offered),), ())).to_load == ()
    [second] = host.install(InstallUnits(Epoch(1), (handle_of(saved, None),), ())).to_load
    assert not host.set_state(first, None)
    assert host.set_state(second, None)
    assert host.install(InstallUnits(Epoch(1), (handle_of(offered),), ())).to_load == ()


def test_a_state_that_arrives_twice_does_not_replace_what_the_unit_has_done_since() -> None:
    host = new_host()
    [handle] = host.install(InstallUnits(Epoch(1), (empty_handle(1),), ())).to_load
    assert host.set_state(handle, None)
    assert take(host, step_of(0))
    assert not host.set_state(handle, None)
    assert seen(host, ONE) == [0]


def test_a_state_that_arrives_after_its_unit_was_dropped_is_not_used() -> None:
    host = new_host()
    [handle] = host.install(InstallUnits(Epoch(1), (empty_handle(1),), ())).to_load
    host.release(ReleaseUnits(Epoch(1), (ONE,), LEASE))
    host.drop(DropUnits(Epoch(1), (ONE,)))
    assert not host.set_state(handle, None)
    with pytest.raises(StateUnavailable):
        host.lookup(ONE, (1,))


def test_a_unit_without_its_state_takes_no_step() -> None:
    host = new_host()
    host.install(InstallUnits(Epoch(1), (empty_handle(1),), (step_of(0),)))
    assert host.ready_steps() == []
    assert host.loading == 1
    assert not host.is_past(START)


def test_released_units_stop_after_the_same_batch_and_take_no_more_steps() -> None:
    host = new_host()
    install(host, empty_handle(1), empty_handle(2))
    host.add_step(ApplyStep(Epoch(1), step_of(0)))
    [ready] = host.ready_steps()
    host.take(ready._replace(units=(ONE,)), {ONE.number: rows_of(0)})  # the other one is a batch behind
    assert host.release(ReleaseUnits(Epoch(1), (ONE, TWO), LEASE)) == (ONE, TWO)
    assert host.capture_released(ONE) is not None
    assert host.capture_released(TWO) is None
    assert take(host, step_of(1)) is None
    [ready] = host.ready_steps()
    assert (ready.step.batch, ready.units) == (0, (TWO,))
    host.take(ready, {TWO.number: rows_of(0)})
    assert host.ready_steps() == []
    captures = [host.capture_released(unit) for unit in (ONE, TWO)]
    assert [capture.batch for capture in captures if capture] == [0, 0]


def test_units_installed_in_a_later_epoch_are_neither_released_nor_dropped_by_an_older_command() -> None:
    host = new_host()
    install(host, empty_handle(1), epoch=1)
    host.release(ReleaseUnits(Epoch(2), (ONE,), LEASE))
    install(host, empty_handle(1), epoch=3)  # it returned before it was dropped
    assert take(host, step_of(0))
    host.drop(DropUnits(Epoch(2), (ONE,)))
    assert seen(host, ONE) == [0]
    assert host.release(ReleaseUnits(Epoch(2), (ONE,), LEASE)) == ()
    host.release(ReleaseUnits(Epoch(4), (ONE,), LEASE))
    host.drop(DropUnits(Epoch(3), (ONE,)))
    assert seen(host, ONE) == [0]
    host.drop(DropUnits(Epoch(4), (ONE,)))
    with pytest.raises(StateUnavailable):
        host.lookup(ONE, (1,))


def test_a_unit_that_was_not_released_is_not_dropped() -> None:
    host = new_host()
    install(host, empty_handle(1))
    host.drop(DropUnits(Epoch(9), (ONE,)))
    assert take(host, step_of(0))


def test_a_snapshot_captures_units_between_two_batches_only() -> None:
    host = new_host()
    install(host, empty_handle(1))
    assert take(host, step_of(0, complete=False))
    assert host.begin_snapshot(TakeSnapshot(Epoch(1), LEASE, {ONE: NO_BATCH}))
    assert host.capture_next() is None
    assert host.left_to_capture == 1
    assert take(host, step_of(0, 1))
    capture = host.capture_next()
    assert capture is not None
    assert capture.unit == ONE
    assert host.left_to_capture == 0


def test_a_node_without_units_keeps_steps_for_units_that_come_later() -> None:
    host = new_host()
    host.add_step(ApplyStep(Epoch(1), step_of(0)))
    install(host, empty_handle(1))
    assert [ready.step.batch for ready in host.ready_steps()] == [0]
