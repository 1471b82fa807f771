"""Standbys on a running node: they follow what is published, take over, and are dropped if their log is gone."""

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from elastic import threads
from elastic.core.ids import NO_BATCH, Batch, Epoch, UnitId
from elastic.core.messages import (
    ApplyStep,
    CaughtUp,
    FollowBatches,
    Heartbeat,
    InstallUnits,
    NodeFailed,
    ReleaseUnits,
    StandbysCaughtUp,
    StandbysDropped,
    StepApplied,
    StepStarted,
    UnitHandle,
    UnitsInstalled,
    UnitsReleased,
)
from elastic.core.steps import Position, Step, end_of
from elastic.core.unit_host import ReadyStep, StepResult
from elastic.routing import hash_keys, split
from storage.state import BatchTime, StateManager, StateRef
from tests.elastic.node.context import ROWS
from tests.elastic.node.operators import History
from tests.elastic.node.scripted_driver import ROUTING, UNITS, RunningNode, pause
from tests.elastic.node.states import LEASE, wait_until
from tests.elastic.node.test_process import number_of, values_of

KEY = 7
OWN = UnitId.from_number(number_of(KEY))  # active here; the node follows the other units
FOLLOWED = tuple(unit for unit in UNITS if unit != OWN)
OTHER = next(key for key in range(100) if UnitId.from_number(number_of(key)) in FOLLOWED)


class Follower(RunningNode):
    """A node that owns the unit of one key and follows all others."""

    def __init__(self) -> None:
        super().__init__(History(), heartbeat_seconds=0.02, max_pending_batches=2)
        self.send_units(*(UnitHandle(OWN, None, NO_BATCH, Position(NO_BATCH, 0)),))
        self.send_units(*(UnitHandle(unit, None, NO_BATCH, Position(NO_BATCH, 0), standby=True) for unit in FOLLOWED))

    def send_units(self, *handles: UnitHandle, steps: tuple[Step, ...] = (), careful: bool = False) -> None:
        self.send(InstallUnits(Epoch(1), handles, steps, careful, routing=ROUTING, cause="e0"))

    def follow(self, published: int) -> None:
        self.send(FollowBatches(Epoch(1), Batch(published)))

    def followed(self) -> Batch:
        return self.process._host.followed_batch()


def manager_of(node: Follower) -> StateManager:
    """Return what saves states where the node loads them from."""
    spec = node.process._context.spec
    return StateManager(node.store, spec.store.secret, spec.job, threads=1)


@pytest.fixture
def node() -> Iterator[Follower]:
    node = Follower()
    yield node
    node.close()


def test_standbys_take_published_steps_and_report_only_that_they_have_caught_up(node: Follower) -> None:
    for batch in range(2):
        node.apply(node.step(batch, (KEY, batch), (OTHER, batch)))
    assert [one.units for one in node.driver.wait_for(StepApplied, 2)] == [(OWN,), (OWN,)]
    pause()
    assert node.followed() == -1
    node.follow(1)
    wait_until(lambda: node.followed() == 1)
    [caught_up, *_] = node.driver.wait_for(StandbysCaughtUp)
    assert set(caught_up.units) == set(FOLLOWED)
    assert [one.units for one in node.driver.of(UnitsInstalled)] == [(OWN,)]
    assert len(node.driver.of(StepApplied)) == 2


def test_standbys_that_are_far_behind_spread_their_steps_over_time(node: Follower) -> None:
    for batch in range(10):
        node.apply(node.step(batch, (KEY, batch), (OTHER, batch)))
    began = threads.monotonic()
    node.follow(9)
    wait_until(lambda: node.followed() == 9)
    assert threads.monotonic() - began > 6 * 0.03  # then it is no further behind than batches in flight are


class Places(History):
    """Notes the thread of every call, and its niceness."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []

    def handle_batch(self, rows: pa.Table, state: Any, context: Any) -> Any:
        nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) if sys.platform == "linux" else 0
        self.seen.append((threading.current_thread().name.partition("_")[0], nice))
        return super().handle_batch(rows, state, context)


def test_a_node_that_only_follows_works_at_low_priority_until_it_owns_a_unit() -> None:
    node = RunningNode(Places(), max_pending_batches=2)
    places = node.process._runners[0].operator.seen  # type: ignore[attr-defined]
    steps = tuple(node.step(batch, (KEY, batch), (OTHER, batch)) for batch in range(3))
    try:
        handles = tuple(UnitHandle(unit, None, NO_BATCH, Position(NO_BATCH, 0), standby=True) for unit in UNITS)
        node.send(InstallUnits(Epoch(1), handles, steps[:2], routing=ROUTING, published=Batch(1), cause="e0"))
        wait_until(lambda: node.process._host.followed_batch() == 1)
        assert {thread for thread, _ in places} == {"reserve"}
        followed = max(nice for _, nice in places)
        places.clear()
        owned = tuple(handle._replace(standby=False, reported=Position(Batch(1), 0)) for handle in handles)
        node.send(InstallUnits(Epoch(1), owned, steps, cause="e1"))
        node.driver.wait_for(StepApplied)
        assert "reserve" not in {thread for thread, _ in places}
        assert not node.process._is_low_priority
        assert sys.platform != "linux" or followed > max(nice for _, nice in places)
    finally:
        node.close()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_at_low_priority_standbys_that_are_far_behind_do_not_pause() -> None:
    node = RunningNode(History(), max_pending_batches=1)
    steps = tuple(node.step(batch, (KEY, batch)) for batch in range(40))
    try:
        handles = tuple(UnitHandle(unit, None, NO_BATCH, Position(NO_BATCH, 0), standby=True) for unit in UNITS)
        began = threads.monotonic()
        node.send(InstallUnits(Epoch(1), handles, steps, routing=ROUTING, published=Batch(39), cause="e0"))
        wait_until(lambda: node.process._host.followed_batch() == 39)
        assert node.process._can_lower_priority
        assert threads.monotonic() - began < 38 * 0.03  # the pauses
    finally:
        node.close()


def test_a_node_that_only_follows_and_stays_behind_for_long_works_as_fast_as_it_can() -> None:
    node = RunningNode(Places(), max_pending_batches=1, snapshot_seconds=0.01)  # half of it is long
    places = node.process._runners[0].operator.seen  # type: ignore[attr-defined]
    steps = tuple(node.step(batch, (KEY, batch)) for batch in range(8))
    try:
        handles = tuple(UnitHandle(unit, None, NO_BATCH, Position(NO_BATCH, 0), standby=True) for unit in UNITS)
        node.process._catch_up_pace.note_step(0.0, is_behind=True)
        pause()
        node.send(InstallUnits(Epoch(1), handles, steps, routing=ROUTING, published=Batch(7), cause="e0"))
        wait_until(lambda: node.process._host.followed_batch() == 7)
        assert "reserve" not in {thread for thread, _ in places[:6]}
    finally:
        node.close()


def test_a_step_says_what_is_published(node: Follower) -> None:
    node.apply(node.step(0, (OTHER, 0)))
    node.send(ApplyStep(Epoch(1), node.step(1), published=Batch(0)))
    wait_until(lambda: node.followed() == 0)


def test_heartbeats_tell_of_standbys_apart_from_the_units_that_the_node_owns(node: Follower) -> None:
    node.apply(node.step(0, (KEY, 1), (OTHER, 0)))
    node.follow(0)

    def newest() -> Heartbeat:
        return node.driver.heartbeats[-1]

    wait_until(lambda: bool(node.driver.heartbeats) and newest().followed_batch == 0)
    assert [one.unit for one in newest().units] == [OWN]
    assert {one.unit: one.rows for one in newest().standbys} == {
        unit: int(unit.number == number_of(OTHER)) for unit in FOLLOWED
    }


def test_a_standby_that_takes_over_continues_with_what_was_not_reported(node: Follower) -> None:
    steps = [node.step(batch, (OTHER, batch)) for batch in range(3)]
    for step in steps:
        node.apply(step)
    node.driver.wait_for(StepApplied, 3)
    node.follow(0)
    wait_until(lambda: node.followed() == 0)
    promoted = UnitId.from_number(number_of(OTHER))
    node.send_units(UnitHandle(promoted, None, NO_BATCH, Position(Batch(1), 0)), steps=tuple(steps), careful=True)
    installed = node.driver.wait_for(UnitsInstalled, 2)[1]
    assert (installed.units, installed.cause) == ((promoted,), "e0")
    wait_until(lambda: [one.units for one in node.driver.of(StepApplied)][-1] == (promoted,))
    [caught_up] = node.driver.wait_for(CaughtUp, 2)[1:]
    assert caught_up.replayed_rows == 1
    assert values_of(node, OTHER) == [0, 1, 2]
    assert {one.position.batch for one in node.driver.of(StepStarted)} == {1, 2}


def test_a_standby_whose_log_is_gone_is_dropped_and_follows_again_from_a_newer_state(node: Follower) -> None:
    node.apply(node.step(0, (KEY, 1), (OTHER, 0)))
    node.driver.wait_for(StepApplied)
    node.store.delete([one.key for one in node.store.list() if "/log/" in one.key])
    node.follow(0)
    [dropped] = node.driver.wait_for(StandbysDropped)
    assert set(dropped.units) == set(FOLLOWED)
    assert not node.driver.of(NodeFailed)
    node.send_units(*(UnitHandle(unit, None, Batch(0), Position(Batch(0), 0), standby=True) for unit in FOLLOWED))
    wait_until(lambda: node.followed() == 0)


def test_a_standby_whose_state_is_replaced_while_it_loads_is_dropped_and_the_others_follow(
    node: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_of(node)
    node.driver.wait_for(StandbysCaughtUp)
    kept, replaced = (manager.save(unit, [5], batch=0, lease=LEASE) for unit in FOLLOWED[:2])
    fetch = node.process._context.store.get
    newer_ref = list[StateRef]()

    def replace_first(key: str, *args: Any, **settings: Any) -> Any:
        if key == replaced.key:
            newer_ref.append(manager.save(replaced.unit, [5, 6], batch=1, lease=LEASE))
            node.store.delete([key])
        return fetch(key, *args, **settings)

    monkeypatch.setattr(node.process._context.store, "get", replace_first)
    node.send_units(*(UnitHandle(one.unit, one, Batch(0), end_of(Batch(0)), standby=True) for one in (kept, replaced)))
    [dropped] = node.driver.wait_for(StandbysDropped)
    [newer] = newer_ref
    assert dropped.units == (replaced.unit,)
    host = node.process._host
    wait_until(lambda: host._units[kept.unit].state is not None)
    assert not node.driver.of(NodeFailed)
    node.send_units(UnitHandle(newer.unit, newer, Batch(1), end_of(Batch(1)), standby=True))
    wait_until(lambda: replaced.unit in node.driver.of(StandbysCaughtUp)[-1].units)


def test_a_node_decodes_one_state_of_a_standby_between_two_of_its_steps(
    node: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, order = manager_of(node), list[Any]()
    node.driver.wait_for(StandbysCaughtUp)
    saved = [manager.save(unit, [5], batch=0, lease=LEASE) for unit in FOLLOWED]
    work, set_state = node.process._work, node.process._host.set_state

    def note_turn() -> bool:
        order.append("turn")
        return work()

    def note_state(handle: UnitHandle, state: Any) -> bool:
        order.append(handle.unit)
        return set_state(handle, state)

    monkeypatch.setattr(node.process, "_work", note_turn)
    monkeypatch.setattr(node.process._host, "set_state", note_state)
    node.send_units(*(UnitHandle(one.unit, one, Batch(0), end_of(Batch(0)), standby=True) for one in saved))
    wait_until(lambda: len(order) - order.count("turn") == len(FOLLOWED))
    first, *others = [place for place, what in enumerate(order) if what != "turn"]
    assert all("turn" in order[before:after] for before, after in zip([first, *others], others, strict=False))


def test_standbys_whose_states_arrived_together_take_their_first_step_together(
    node: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.driver.wait_for(StandbysCaughtUp)
    with monkeypatch.context() as patch:
        patch.setattr(type(node.process._installations), "has_arrived_states", True)
        node.apply(node.step(0, (KEY, 1), (OTHER, 5)))
        node.driver.wait_for(StepApplied)
        node.follow(0)
        pause(0.2)
        assert node.followed() == NO_BATCH
    node.process._inbox.put(lambda: None)
    wait_until(lambda: node.followed() == 0)


def save_first_state(node: Follower) -> UnitHandle:
    """Save a state of the first unit that the node follows, once it has caught up; return what installs the unit."""
    node.driver.wait_for(StandbysCaughtUp)
    saved = manager_of(node).save(FOLLOWED[0], [5], batch=0, lease=LEASE)
    return UnitHandle(saved.unit, saved, Batch(0), end_of(Batch(0)))


def test_a_standby_that_takes_over_while_its_state_waits_to_be_decoded_is_reported_once(
    node: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state that it followed from is right for the owner, too, and is loaded again with urgency."""
    handle, installations = save_first_state(node), node.process._installations
    with monkeypatch.context() as patch:
        patch.setattr(installations, "_set_next_state", lambda: False)
        node.send_units(handle._replace(standby=True))
        wait_until(lambda: installations.has_arrived_states)
        node.send_units(handle)
        wait_until(lambda: handle.unit in [unit for one in node.driver.of(UnitsInstalled) for unit in one.units])
    node.process._inbox.put(lambda: None)
    wait_until(lambda: not installations.has_arrived_states)
    pause(0.1)
    assert [unit for one in node.driver.of(UnitsInstalled) for unit in one.units].count(handle.unit) == 1


def test_a_standby_that_takes_over_may_get_the_state_that_waits_to_be_decoded_first(
    node: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle, installations = save_first_state(node), node.process._installations
    with monkeypatch.context() as patch:
        patch.setattr(installations, "_set_next_state", lambda: False)
        node.send_units(handle._replace(standby=True))
        wait_until(lambda: installations.has_arrived_states)
        patch.setattr(installations._loader, "load", lambda *_, **__: None)  # with urgency, but later
        node.send_units(handle)
        wait_until(lambda: not node.process._host.is_standby(handle.unit))
    node.process._inbox.put(lambda: None)
    wait_until(lambda: handle.unit in [unit for one in node.driver.of(UnitsInstalled) for unit in one.units])


def test_a_unit_that_takes_over_is_not_dropped_because_the_state_it_followed_from_is_gone(
    node: Follower,
) -> None:
    """No other node serves it, so the job has to fail and say why."""
    gone = manager_of(node).pack(FOLLOWED[0], [5], batch=0, lease=LEASE)
    node.send_units(UnitHandle(FOLLOWED[0], gone.ref, Batch(0), end_of(Batch(0))))
    [failed] = node.driver.wait_for(NodeFailed)
    assert failed.error["type"] == "ObjectMissing"
    assert not node.driver.of(StandbysDropped)


def test_rows_that_were_uploaded_wait_for_the_standbys(node: Follower) -> None:
    step = node.step(0, (KEY, 1), (OTHER, 5))
    table = pa.Table.from_pylist([{"key": KEY, "value": 1}, {"key": OTHER, "value": 5}], schema=ROWS)
    parts = split(table, ROUTING.unit_numbers(hash_keys([table["key"]]), 0))
    header = {
        "ref": step.logs[0].to_json(),
        "covers": [[0, len(UNITS)]],
        "unit_numbers": parts.unit_numbers,
        "offsets": parts.offsets[1:],
    }
    node.process._staged.upload(header, parts.table)
    node.store.delete([one.key for one in node.store.list() if "/log/" in one.key])
    node.apply(step)
    node.driver.wait_for(StepApplied)
    node.follow(0)
    wait_until(lambda: node.followed() == 0)
    assert not node.driver.of(StandbysDropped)
    assert node.process._staged.size == 0


def test_a_warm_release_stores_nothing_and_says_when_each_unit_has_stopped(node: Follower) -> None:
    node.apply(node.step(0, (KEY, 1)))
    node.driver.wait_for(StepApplied)
    node.send(ReleaseUnits(Epoch(1), (OWN,), LEASE, warm=True))
    [released] = node.driver.wait_for(UnitsReleased)
    assert (released.states, released.stopped, released.last_batches) == ((), ((OWN, 0),), ((OWN, 0),))
    assert not [one.key for one in node.store.list() if one.key.endswith(".state")]


def test_standbys_that_are_far_behind_take_their_turn_although_the_node_is_busy(
    node: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing but active steps to take, each other turn is theirs."""
    node.driver.wait_for(StandbysCaughtUp)
    host, order = node.process._host, list[tuple[bool, int]]()
    take = host.take

    def note(ready: ReadyStep, rows: Any, before_unit: Any) -> StepResult:
        order.append((ready.standby, ready.step.batch))
        return take(ready, rows, before_unit)

    def add_steps() -> None:
        for batch in range(8):
            step = Step(Position(Batch(batch), 0), True, (), BatchTime(batch, batch))
            host.add_step(ApplyStep(Epoch(1), step, published=Batch(7)))

    monkeypatch.setattr(host, "take", note)
    node.process._inbox.put(add_steps)
    wait_until(lambda: node.followed() == 7)
    assert [batch for standby, batch in order if standby] == list(range(8))
    assert 0 < sum(not standby for standby, _ in order[:6]) < 6
    assert order.index((False, 7)) < order.index((True, 7))
