"""Standbys on a node: which steps they take, what they keep to themselves, and how they become active and back."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from elastic.core.ids import NO_BATCH, Batch, Epoch
from elastic.core.messages import (
    ApplyStep,
    DropUnits,
    FollowBatches,
    InstallUnits,
    ReleaseUnits,
    TakeSnapshot,
    UnchangedUnit,
    UnitHandle,
)
from elastic.core.pipeline import create_runners
from elastic.core.steps import Position, Step, end_of
from elastic.core.unit_host import Capture, StepResult, UnitHost
from elastic.errors import StateUnavailable
from elastic.operators import Stage
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner
from storage.state import SavedState, StateRef
from tests.elastic.core.test_unit_host import ONE, STATE_KEY, TWO, new_host, rows_of, seen, step_of
from tests.elastic.node.context import describe
from tests.elastic.node.operators import History
from tests.elastic.node.states import LEASE, empty_handle


def standby_of(task: int, *, through: int = -1) -> UnitHandle:
    return empty_handle(task)._replace(standby=True, through=Batch(through))


def active(task: int, reported: Position, *, through: int = -1) -> UnitHandle:
    return empty_handle(task)._replace(reported=reported, through=Batch(through))


def install(host: UnitHost, *handles: UnitHandle, published: int = -1, steps: tuple[Step, ...] = ()) -> None:
    for handle in host.install(InstallUnits(Epoch(1), handles, steps, published=Batch(published))).to_load:
        assert host.set_state(handle, None)


def apply(host: UnitHost, batch: int, *, published: int = -1) -> None:
    host.add_step(ApplyStep(Epoch(1), step_of(batch), published=Batch(published)))


def follow(host: UnitHost) -> list[StepResult]:
    """Let standbys take all steps that they may take, with a row that has the number of the batch."""
    results = []
    while ready := host.ready_steps(standby=True):
        step = ready[0]
        results.append(host.take(step, {unit.number: rows_of(step.step.batch) for unit in step.units}))
    return results


def work(host: UnitHost) -> list[StepResult]:
    results = []
    while ready := host.ready_steps():
        step = ready[0]
        results.append(host.take(step, {unit.number: rows_of(step.step.batch) for unit in step.units}))
    return results


@pytest.fixture
def host() -> UnitHost:
    """Unit 1 is active, unit 2 a standby; three batches are committed, of which the first is published."""
    host = new_host()
    install(host, empty_handle(1))
    install(host, standby_of(2), published=0)
    for batch in range(3):
        apply(host, batch)
    return host


def test_a_standby_takes_steps_of_published_batches_only(host: UnitHost) -> None:
    assert [result.position.batch for result in follow(host)] == [0]
    host.follow(FollowBatches(Epoch(1), Batch(1)))
    assert [result.position.batch for result in follow(host)] == [1]
    apply(host, 3, published=2)
    assert [result.position.batch for result in follow(host)] == [2]
    assert host.lookup(TWO, (1,), stale=True).value == [0, 1, 2]


def test_a_standby_reports_nothing_and_its_steps_are_no_replay(host: UnitHost) -> None:
    [result] = follow(host)
    assert (result.units, result.rows, result.results) == ((), 0, {})
    assert host.replayed_rows == 0


def test_a_standby_delays_nothing_that_is_told_of_the_active_units(host: UnitHost) -> None:
    work(host)
    assert (host.done_batch(), host.settled_batch(), host.followed_batch()) == (2, -1, -1)
    assert (host.pending_steps, host.standby_lag) == (0, 1)
    assert host.is_past(Position(Batch(2), 0))
    follow(host)
    assert (host.settled_batch(), host.followed_batch(), host.standby_lag) == (0, 0, 0)
    assert [one.unit for one in host.statistics()] == [ONE]
    assert [(one.unit, one.rows) for one in host.statistics(standby=True)] == [(TWO, 1)]


def test_a_standby_answers_only_where_an_answer_may_be_stale(host: UnitHost) -> None:
    follow(host)
    with pytest.raises(StateUnavailable):
        seen(host, TWO)
    assert host.lookup(TWO, (1,), stale=True)[1:] == (0, [0])
    assert host.units_of_stage(0) == [ONE]


def test_a_snapshot_leaves_standbys_out(host: UnitHost) -> None:
    host.begin_snapshot(TakeSnapshot(Epoch(1), LEASE, {ONE: NO_BATCH, TWO: NO_BATCH}))
    assert host.left_to_capture == 1


def test_a_standby_tells_once_that_it_has_caught_up(host: UnitHost) -> None:
    assert host.take_caught_up() == ()
    follow(host)
    assert host.take_caught_up() == (TWO,)
    host.follow(FollowBatches(Epoch(1), Batch(1)))
    assert host.take_caught_up() == ()


def test_a_standby_that_is_promoted_loads_nothing_and_reports_what_was_not_reported(host: UnitHost) -> None:
    follow(host)
    installation = host.install(InstallUnits(Epoch(1), (active(2, Position(Batch(1), 0)),), ()))
    assert installation == ((), (TWO,))
    results = work(host)
    assert [result.units for result in results] == [(ONE,), (ONE,), (ONE, TWO)]
    assert seen(host, TWO) == [0, 1, 2]
    assert host.replayed_rows == 1
    assert {one.unit: one.rows for one in host.statistics()} == {ONE: 3, TWO: 2}  # those since it is active


def test_a_promoted_standby_whose_saved_state_is_newer_loads_that(host: UnitHost) -> None:
    saved = StateRef((STATE_KEY % 1).replace("task-1", "task-2"), TWO, 1, 10, LEASE)
    newer = active(2, end_of(Batch(1)), through=1)._replace(state=saved)
    assert host.install(InstallUnits(Epoch(1), (newer,), ())).to_load == (newer,)
    assert not host.is_past(Position(Batch(0), 0))


def test_a_promoted_standby_that_is_as_new_as_its_saved_state_keeps_its_own(host: UnitHost) -> None:
    follow(host)
    assert host.install(InstallUnits(Epoch(1), (active(2, end_of(Batch(0)), through=0),), ())).promoted == (TWO,)


def test_a_standby_that_is_ahead_of_what_was_reported_is_loaded_again(host: UnitHost) -> None:
    """It has dropped the output between."""
    follow(host)
    handle = active(2, end_of(NO_BATCH))
    assert host.install(InstallUnits(Epoch(1), (handle,), ())).to_load == (handle,)


def test_a_standby_that_is_promoted_while_it_loads_is_loaded_at_once_and_active_when_its_state_arrives() -> None:
    host = new_host()
    [loading] = host.install(InstallUnits(Epoch(1), (standby_of(2),), ())).to_load
    promoted = active(2, end_of(NO_BATCH))
    assert host.install(InstallUnits(Epoch(1), (promoted,), (step_of(0),))) == ((promoted,), ())
    assert host.set_state(loading, None)  # whichever comes first
    assert not host.set_state(promoted, None)
    assert [result.units for result in work(host)] == [(TWO,)]


def test_a_standby_that_loads_a_state_which_is_right_for_longer_now_loads_it_again() -> None:
    """The log between may be gone."""
    host = new_host()
    host.install(InstallUnits(Epoch(1), (standby_of(2),), ()))
    later = standby_of(2, through=3)
    assert host.install(InstallUnits(Epoch(1), (later,), ())).to_load == (later,)


def test_a_released_unit_goes_on_as_a_standby_with_the_state_that_it_has(host: UnitHost) -> None:
    work(host)
    host.release(ReleaseUnits(Epoch(1), (ONE,), LEASE, warm=True))
    assert host.stopped_batch(ONE) == 2
    assert host.install(InstallUnits(Epoch(2), (standby_of(1),), (), published=Batch(0))) == ((), ())
    apply(host, 3, published=2)
    follow(host)
    assert host.lookup(ONE, (1,), stale=True).value == [0, 1, 2]
    host.follow(FollowBatches(Epoch(2), Batch(3)))
    follow(host)
    assert host.lookup(ONE, (1,), stale=True).value == [0, 1, 2, 3]


def test_a_standby_with_a_state_as_new_as_the_saved_one_stays_and_an_older_one_is_loaded_again(host: UnitHost) -> None:
    follow(host)
    assert host.install(InstallUnits(Epoch(1), (standby_of(2, through=0),), ())).to_load == ()
    newer = standby_of(2, through=1)
    assert host.install(InstallUnits(Epoch(1), (newer,), ())).to_load == (newer,)


def test_a_standby_is_not_released_and_is_dropped_at_once(host: UnitHost) -> None:
    assert host.release(ReleaseUnits(Epoch(1), (TWO,), LEASE)) == ()
    host.drop(DropUnits(Epoch(0), (TWO,)))
    assert host.is_standby(TWO)
    host.drop(DropUnits(Epoch(1), (ONE, TWO)))
    assert not host.is_standby(TWO)
    assert seen(host, ONE) == []


def test_an_active_unit_does_not_become_a_standby_while_it_works(host: UnitHost) -> None:
    host.install(InstallUnits(Epoch(2), (standby_of(1),), ()))
    assert not host.is_standby(ONE)
    assert host.drop_standbys([ONE, TWO]) == (TWO,)


def test_steps_are_kept_for_standbys_that_may_not_take_them_yet(host: UnitHost) -> None:
    work(host)
    assert [step.batch for step in host.steps_after(Position(NO_BATCH, 0))] == [0, 1, 2]
    assert [step.batch for step in host.steps_to_follow(Position(NO_BATCH, 0))] == [0]
    host.follow(FollowBatches(Epoch(1), Batch(2)))
    follow(host)
    assert list(host.steps_after(Position(NO_BATCH, 0))) == []


def test_a_standby_takes_all_rounds_of_a_published_batch_before_it_has_caught_up() -> None:
    host = new_host()
    install(host, standby_of(2), published=0, steps=(step_of(0, complete=False),))
    assert [result.position for result in follow(host)] == [(0, 0)]
    assert (host.take_caught_up(), host.followed_batch(), host.standby_lag) == ((), -1, 1)
    host.add_step(ApplyStep(Epoch(1), step_of(0, 1), published=Batch(0)))
    assert [result.position for result in follow(host)] == [(0, 1)]
    assert (host.take_caught_up(), host.followed_batch(), host.standby_lag) == ((TWO,), 0, 0)


def test_a_unit_that_is_released_within_a_batch_stops_after_its_last_round() -> None:
    host = new_host()
    install(host, empty_handle(1), steps=(step_of(0, complete=False), step_of(1)))
    work(host)
    host.release(ReleaseUnits(Epoch(1), (ONE,), LEASE, warm=True))
    assert (host.stopped_batch(ONE), host.capture_released(ONE)) == (None, None)
    host.add_step(ApplyStep(Epoch(1), step_of(0, 1)))
    assert [result.position for result in work(host)] == [(0, 1)]
    assert host.stopped_batch(ONE) == 0


def test_a_standby_that_was_active_meanwhile_tells_again_that_it_has_caught_up_and_counts_anew(host: UnitHost) -> None:
    follow(host)
    assert host.take_caught_up() == (TWO,)
    host.install(InstallUnits(Epoch(1), (active(2, end_of(Batch(0))),), ()))
    work(host)
    host.release(ReleaseUnits(Epoch(1), (TWO,), LEASE, warm=True))
    host.install(InstallUnits(Epoch(2), (standby_of(2),), (), published=Batch(2)))
    assert [(one.unit, one.rows) for one in host.statistics(standby=True)] == [(TWO, 0)]
    assert host.take_caught_up() == (TWO,)


def test_a_unit_that_was_released_is_not_loaded_by_a_command_of_the_same_epoch(host: UnitHost) -> None:
    """It was sent before the release, or again; another node has worked on the unit only after a later one."""
    work(host)
    host.release(ReleaseUnits(Epoch(2), (ONE,), LEASE, warm=True))
    handle = active(1, end_of(Batch(2)), through=2)
    assert host.install(InstallUnits(Epoch(2), (handle,), ())).to_load == ()
    assert host.stopped_batch(ONE) == 2
    assert host.install(InstallUnits(Epoch(3), (handle,), ())).to_load == (handle,)


def test_a_unit_that_is_being_loaded_loads_another_state_of_the_same_batch() -> None:
    """The one before may have been on a node that was lost."""
    host = new_host()
    released, saved = (StateRef(f"{STATE_KEY % 0}{name}", ONE, 0, 10, LEASE) for name in "ab")
    handles = [UnitHandle(ONE, one, Batch(0), end_of(Batch(0))) for one in (released, saved)]
    for handle in handles:
        assert host.install(InstallUnits(Epoch(1), (handle,), ())).to_load == (handle,)
    assert [host.is_waiting_for(handle) for handle in handles] == [False, True]


def test_a_state_that_is_newer_than_the_saved_one_is_captured_although_no_step_has_changed_it_since() -> None:
    """A snapshot that called it unchanged would say that the saved state, which is older, includes its batch."""
    host = new_host()
    newer = UnitHandle(ONE, StateRef(STATE_KEY % 3, ONE, 3, 10, LEASE), Batch(3), end_of(Batch(3)))
    host.install(InstallUnits(Epoch(1), (newer,), ()))
    assert host.set_state(newer, SavedState({}, {"unit": ONE.to_json(), "batch": 3}))
    for saved, expected in ((1, Capture), (3, UnchangedUnit)):
        assert host.begin_snapshot(TakeSnapshot(Epoch(1), f"lease-{saved}", {ONE: Batch(saved)}))
        assert isinstance(host.capture_next(), expected)


def test_a_unit_that_has_stopped_delays_nothing_that_is_told_of_those_that_work(host: UnitHost) -> None:
    install(host, empty_handle(3))
    work(host)
    host.release(ReleaseUnits(Epoch(1), (ONE,), LEASE, warm=True))
    apply(host, 3)
    work(host)
    assert (host.stopped_batch(ONE), host.done_batch()) == (2, 3)
    assert [unit.task for unit in host.units_of_stage(0)] == [3]


def test_a_unit_that_is_released_while_it_is_loaded_has_not_stopped_before_it_has_its_state() -> None:
    host = new_host()
    handle = active(1, end_of(Batch(0)), through=0)
    host.install(InstallUnits(Epoch(1), (handle,), ()))
    assert host.release(ReleaseUnits(Epoch(1), (ONE,), LEASE)) == (ONE,)
    assert (host.stopped_batch(ONE), host.capture_released(ONE)) == (None, None)
    assert host.set_state(handle, None)
    captured = host.capture_released(ONE)
    assert captured is not None
    assert (host.stopped_batch(ONE), captured.batch) == (0, 0)


@pytest.mark.parametrize("role", ["loaded", "promoted", "a standby"])
def test_a_unit_takes_a_step_that_kills_processes_in_another_process_in_whatever_role(role: str) -> None:
    isolated: list[int] = []

    def isolate(runner: StageRunner, state: UnitState, slices: Sequence[pa.Table], moment: Moment) -> Any:
        isolated.append(moment.batch)
        return state, runner.step(state, slices, moment)

    host = UnitHost(create_runners(describe([Stage(History(), ("key",))]), "fail"), isolate)
    step = Position(Batch(1), 0)
    handles = {
        "loaded": [active(2, end_of(NO_BATCH))._replace(isolated=(step,))],
        "promoted": [standby_of(2), active(2, end_of(NO_BATCH))._replace(isolated=(step,))],
        "a standby": [standby_of(2), standby_of(2)._replace(isolated=(step,))],
    }
    for handle in handles[role]:
        install(host, handle, published=2)
    for batch in range(3):
        apply(host, batch, published=2)
    work(host)
    follow(host)
    assert isolated == [1]


def test_a_standby_that_is_told_again_to_follow_tells_again_that_it_has_caught_up(host: UnitHost) -> None:
    """The driver, which has told it so, waits for that."""
    follow(host)
    assert host.take_caught_up() == (TWO,)
    assert host.install(InstallUnits(Epoch(1), (standby_of(2),), ())) == ((), ())
    assert host.take_caught_up() == (TWO,)


def test_a_standby_that_has_taken_the_last_step_that_was_reported_takes_over_with_its_state(host: UnitHost) -> None:
    follow(host)
    assert host.install(InstallUnits(Epoch(1), (active(2, Position(Batch(0), 0)),), ())) == ((), (TWO,))
    assert [result.units for result in work(host)][-1] == (ONE, TWO)
    assert seen(host, TWO) == [0, 1, 2]


def test_commands_of_an_epoch_before_do_not_end_the_role_that_a_unit_has_got_since(host: UnitHost) -> None:
    follow(host)
    host.install(InstallUnits(Epoch(3), (active(2, end_of(Batch(0))),), ()))
    assert host.release(ReleaseUnits(Epoch(2), (TWO,), LEASE, warm=True)) == ()
    work(host)
    assert host.release(ReleaseUnits(Epoch(3), (TWO,), LEASE, warm=True)) == (TWO,)
    host.install(InstallUnits(Epoch(5), (standby_of(2),), (), published=Batch(2)))
    host.drop(DropUnits(Epoch(4), (TWO,)))
    assert host.is_standby(TWO)
