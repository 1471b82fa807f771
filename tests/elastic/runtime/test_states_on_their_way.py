"""States that leave a node and come to another: packed once, offered, stored behind, fetched from where they are."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import storage
from elastic.routing import IntervalRouting
from elastic.runtime.node.loading import Loader
from elastic.runtime.node.offering import Offers
from elastic.runtime.node.releasing import Releases
from elastic.runtime.node.retrieving import Retrieval
from elastic.runtime.node.saver import Saver
from elastic.runtime.pipeline import runners
from elastic.runtime.protocol import Adopt, Forget, Held, Host, Position, Release, Released, Stored
from elastic.runtime.protocol.host import Capture
from elastic.runtime.wire import PeerUnavailable, Refused
from migration import Assignment
from storage import Secret
from storage.errors import DamagedObject, StoreUnavailable
from storage.state import PackedState, StateManager, StateRef, Unit
from tests.elastic.runtime.simulation.operators import PIPELINES
from tests.elastic.runtime.simulation.oracle import pipeline_of

LEASE = "000000000001-000000001-ab"
START = Position(-1, 0)


@pytest.fixture
def manager() -> StateManager:
    return StateManager(storage.open("memory:"), Secret.of("a secret of this test"), "moved", threads=2)


def packed(manager: StateManager, slot: int, state: Any = None) -> PackedState:
    return manager.pack(Unit.of_task(slot), state or {"n": slot}, batch=3, lease=LEASE)


def held(ref: StateRef, source: str | None = "source:1") -> Held:
    return Held(ref.unit.task, ref, ref.batch, START, source)


def offering(offers: Offers) -> Callable[[str, StateRef], memoryview]:
    return lambda _, ref: offers.download({"state": ref.key})


def unreachable(address: str, _: StateRef) -> memoryview:
    raise PeerUnavailable(address)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_an_offered_state_needs_no_store(manager: StateManager) -> None:
    offers, one = Offers(), packed(manager, 5)
    offers.put(one)
    retrieval = Retrieval(manager, offering(offers), [held(one.ref), Held(6, None, -1, START)], lambda _: True)
    retrieval.attempt()
    assert {unit.slot: state for unit, state in retrieval.found.items()} == {5: {"n": 5}, 6: None}
    assert retrieval.direct_bytes == one.ref.size


def test_a_state_whose_source_is_gone_comes_from_the_store_as_soon_as_it_is_there(manager: StateManager) -> None:
    here, gone = packed(manager, 1), packed(manager, 2)
    manager.put(here)
    retrieval = Retrieval(manager, unreachable, [held(here.ref), held(gone.ref)], lambda _: True)
    with pytest.raises(StoreUnavailable, match="has not stored it yet"):
        retrieval.attempt()
    assert [unit.slot for unit in retrieval.found] == [1]
    manager.put(gone)
    retrieval.attempt()
    assert sorted(unit.slot for unit in retrieval.found) == [1, 2]
    assert retrieval.direct_bytes == 0


def test_a_state_that_nobody_wants_any_more_is_not_waited_for(manager: StateManager) -> None:
    gone = held(packed(manager, 2).ref)
    wanted = True
    retrieval = Retrieval(manager, unreachable, [gone], lambda _: wanted)
    with pytest.raises(StoreUnavailable):
        retrieval.attempt()
    wanted = False
    retrieval.attempt()
    assert retrieval.found == {}


def test_bytes_from_a_node_are_verified_like_those_from_the_store(manager: StateManager) -> None:
    one = packed(manager, 5)
    flipped = bytearray(one.data)
    flipped[-1] ^= 1
    retrieval = Retrieval(manager, lambda *_: memoryview(flipped), [held(one.ref)], lambda _: True)
    with pytest.raises(StoreUnavailable, match="checksum"):
        retrieval.attempt()
    manager.put(one)
    retrieval.attempt()
    assert list(retrieval.found.values()) == [{"n": 5}]
    assert retrieval.direct_bytes == 0


def test_a_damaged_object_in_the_store_is_refused_at_once(manager: StateManager) -> None:
    one = packed(manager, 5)
    manager.put(PackedState(one.ref, one.data[:-1]))
    with pytest.raises(DamagedObject):
        Retrieval(manager, unreachable, [held(one.ref, source=None)], lambda _: True).attempt()


def test_a_load_that_waits_in_vain_does_not_keep_its_correction_waiting(manager: StateManager) -> None:
    lost, older = packed(manager, 5), packed(manager, 5, {"n": "older"})
    manager.put(older)
    arrived: list[dict[Held, Any]] = []
    failures: list[BaseException] = []
    loader = Loader(manager, "token", 30.0, lambda call: call(), failures.append)
    nowhere = held(lost.ref, source="127.0.0.1:1")
    loader.load([nowhere], lambda found, _: arrived.append(found))
    correction = held(older.ref, source=None)
    loader.load([correction], lambda found, _: arrived.append(found))
    until(lambda: len(arrived) == 2)
    assert {correction: {"n": "older"}} in arrived
    assert {} in arrived
    assert not failures
    loader.close()


def test_offers_above_the_limit_go_when_they_are_stored_oldest_first(manager: StateManager) -> None:
    some = [packed(manager, slot) for slot in range(3)]
    size = some[0].ref.size
    offers = Offers(limit_bytes=2 * size)
    for one in some:
        offers.put(one)
    assert not offers.has_room
    assert all(offers.has(one.ref) for one in some)
    offers.stored(some[1].ref)
    assert [offers.has(one.ref) for one in some] == [True, False, True]
    with pytest.raises(Refused, match="not offered"):
        offers.download({"state": some[1].ref.key})
    offers.forget((0,))
    assert offers.size == size
    assert offers.has_room


def test_large_states_are_captured_one_at_a_time(manager: StateManager) -> None:
    routing = IntervalRouting(Assignment.even(tasks=8, nodes=1))
    go, woken = threading.Event(), threading.Event()
    saver = Saver(manager, routing, woken.set, "test", at_once=4)

    def care(one: PackedState) -> StateRef:
        assert go.wait(10)
        return one.ref

    small = [saver.pack(Capture(slot, b"small", 3), LEASE, care) for slot in range(2)]
    room = [saver.has_room]
    large = saver.pack(Capture(2, bytes(65 << 20), 3), LEASE, care)
    room.append(saver.has_room)
    go.set()
    assert [future.result(10).unit.task for future in (*small, large)] == [0, 1, 2]
    room.append(saver.has_room)
    assert room == [True, False, True]
    assert woken.wait(10)
    saver.close()


class Turns:
    """What becomes of packed states here: each takes a tenth of a second, and is written down."""

    def __init__(self) -> None:
        self.began: list[float] = []
        self.ended: list[float] = []
        self.niceness: list[int] = []

    def __call__(self, one: PackedState) -> StateRef:
        self.began.append(time.monotonic())
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        time.sleep(0.1)
        self.ended.append(time.monotonic())
        return one.ref


def test_a_gentle_saver_rests_as_long_as_it_worked_and_leaves_processors_to_others(manager: StateManager) -> None:
    routing = IntervalRouting(Assignment.even(tasks=8, nodes=1))
    saver, turns = Saver(manager, routing, lambda: None, "test", at_once=1, gentle_seconds=60), Turns()
    for future in [saver.pack(Capture(slot, b"small", 3), LEASE, turns) for slot in range(2)]:
        future.result(10)
    assert turns.began[1] - turns.ended[0] >= 0.1
    assert min(turns.niceness) > os.getpriority(os.PRIO_PROCESS, 0)
    saver.close()


def test_a_saver_that_was_gentle_for_long_enough_hurries_until_the_next_lease(manager: StateManager) -> None:
    routing = IntervalRouting(Assignment.even(tasks=8, nodes=1))
    saver, turns = Saver(manager, routing, lambda: None, "test", at_once=1, gentle_seconds=0.05), Turns()
    for slot, lease in enumerate([LEASE, LEASE, "000000000002-000000002-cd"]):
        saver.pack(Capture(slot, b"small", 3), lease, turns).result(10)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert [niceness > own for niceness in turns.niceness] == [True, False, True]
    assert turns.began[1] - turns.ended[0] < 0.1
    saver.close()


def niceness_of_snapshots(manager: StateManager, own: int) -> int:
    """The niceness at which a node that runs at `own` saves; in a thread, because niceness is inherited by threads."""
    turns = Turns()

    def save() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own)
        routing = IntervalRouting(Assignment.even(tasks=8, nodes=1))
        saver = Saver(manager, routing, lambda: None, "test", at_once=1, gentle_seconds=60)
        saver.pack(Capture(0, b"small", 3), LEASE, turns).result(10)
        saver.close()

    node = threading.Thread(target=save)
    node.start()
    node.join(10)
    [niceness] = turns.niceness
    return niceness


@pytest.mark.parametrize(("own", "expected"), [(5, 15), (12, 19), (19, 19)])
def test_a_saver_lowers_its_priority_from_that_of_its_node_and_never_raises_it(
    manager: StateManager, own: int, expected: int
) -> None:
    assert niceness_of_snapshots(manager, own) == expected


def test_a_node_that_may_not_change_priorities_saves_nevertheless(
    manager: StateManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError("not permitted")

    routing = IntervalRouting(Assignment.even(tasks=8, nodes=1))
    saver = Saver(manager, routing, lambda: None, "test", at_once=1, gentle_seconds=60)
    monkeypatch.setattr(os, "setpriority", refuse)
    assert saver.save(Capture(0, b"small", 3), LEASE).result(10).unit.task == 0
    assert "it cannot be lowered: not permitted" in caplog.text
    saver.close()


@pytest.mark.parametrize("direct", [True, False])
def test_released_units_are_reported_when_their_states_can_be_fetched(manager: StateManager, direct: bool) -> None:
    host = Host(runners(pipeline_of(PIPELINES["columns"]), "fail"))
    units = tuple(Held(slot, None, -1, START) for slot in range(3))
    for one in host.adopt(Adopt(1, units, ())):
        assert host.loaded(one, None)
    offers, reports = Offers(), list[Released | Stored]()
    saver = Saver(manager, IntervalRouting(Assignment.even(tasks=8, nodes=1)), lambda: None, "test", at_once=2)
    releases = Releases(host, saver, manager, offers, reports.append, ("node-1", "node-1.1"), 5.0, lambda: None)
    releases.begin(Release(1, (0, 1), LEASE, direct))
    until(lambda: not releases.go_on() and any(isinstance(report, Released) for report in reports))
    [released] = [report for report in reports if isinstance(report, Released)]
    assert released.stored is not direct
    assert sorted(ref.unit.task for ref in released.states) == [0, 1]
    if direct:
        until(lambda: sum(isinstance(report, Stored) for report in reports) == 2)
        assert all(offers.has(ref) for ref in released.states)
    for ref in released.states:
        manager.load(ref)
    releases.forget(Forget(1, (0, 1)))
    assert offers.size == 0
    releases.close()
    saver.close()


def test_a_unit_that_is_being_loaded_takes_another_state_and_then_only_that_one() -> None:
    host = Host(runners(pipeline_of(PIPELINES["columns"]), "fail"))
    key = f"operators/moved/state/{LEASE}/task-1-%d-x.state"
    offered, saved = (StateRef(key % batch, Unit.of_task(1), batch, 10, LEASE) for batch in (7, 4))
    [first] = host.adopt(Adopt(1, (held(offered),), ()))
    assert host.adopt(Adopt(1, (held(offered),), ())) == ()
    [second] = host.adopt(Adopt(1, (held(saved, None),), ()))
    assert not host.loaded(first, None)
    assert host.loaded(second, None)
    assert host.adopt(Adopt(1, (held(offered),), ())) == ()
