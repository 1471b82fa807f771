"""States of installed units: from the node that offers them, else from the store, and only while they are wanted."""

from collections.abc import Callable
from typing import Any

import pytest

from elastic.core.messages import UnitHandle
from elastic.node import state_loader
from elastic.node.context import NodeContext
from elastic.node.offers import Offers
from elastic.node.state_loader import Retrieval, StateLoader
from elastic.node.throttle import CopyThrottle
from elastic.wire import PeerUnavailable
from storage.errors import DamagedObject, ObjectMissing, StoreUnavailable
from storage.state import PackedState, SavedState, StateManager, StateRef
from tests.elastic.node.context import Recorder, context_of
from tests.elastic.node.states import empty_handle, handle_of, pack, wait_until


def offering(offers: Offers) -> Callable[[str, StateRef], memoryview]:
    return lambda _, ref: offers.download({"state": ref.key})


def unreachable(address: str, _: StateRef) -> memoryview:
    raise PeerUnavailable(address)


def make_loader(context: NodeContext, manager: StateManager, bytes_per_second: float = 0) -> StateLoader:
    return StateLoader(context, manager, manager, CopyThrottle(bytes_per_second, context.closing))


def test_an_offered_state_needs_no_store(manager: StateManager) -> None:
    offers, one = Offers(), pack(manager, 5)
    offers.put(one)
    retrieval = Retrieval(manager, offering(offers), [handle_of(one.ref), empty_handle(6)], lambda _: True)
    retrieval.attempt()
    found = {handle.unit.task: saved and saved.state for handle, saved in retrieval.found.items()}
    assert found == {5: {"n": 5}, 6: None}
    assert retrieval.direct_bytes == one.ref.size


def test_a_state_whose_source_is_gone_comes_from_the_store_as_soon_as_it_is_there(manager: StateManager) -> None:
    here, gone = pack(manager, 1), pack(manager, 2)
    manager.put(here)
    retrieval = Retrieval(manager, unreachable, [handle_of(here.ref), handle_of(gone.ref)], lambda _: True)
    with pytest.raises(StoreUnavailable, match="has not stored it yet"):
        retrieval.attempt()
    assert [handle.unit.task for handle in retrieval.found] == [1]
    manager.put(gone)
    retrieval.attempt()
    assert sorted(handle.unit.task for handle in retrieval.found) == [1, 2]
    assert retrieval.direct_bytes == 0


def test_a_state_that_is_not_wanted_any_more_is_not_waited_for(manager: StateManager) -> None:
    gone = handle_of(pack(manager, 2).ref)
    wanted = True
    retrieval = Retrieval(manager, unreachable, [gone], lambda _: wanted)
    with pytest.raises(StoreUnavailable):
        retrieval.attempt()
    wanted = False
    retrieval.attempt()
    assert retrieval.found == {}


def test_bytes_from_a_node_are_verified_like_those_from_the_store(manager: StateManager) -> None:
    one = pack(manager, 5)
    flipped = bytearray(one.data)
    flipped[-1] ^= 1
    retrieval = Retrieval(manager, lambda *_: memoryview(flipped), [handle_of(one.ref)], lambda _: True)
    with pytest.raises(StoreUnavailable, match="checksum"):
        retrieval.attempt()
    manager.put(one)
    retrieval.attempt()
    assert [saved and saved.state for saved in retrieval.found.values()] == [{"n": 5}]
    assert retrieval.direct_bytes == 0


def test_a_damaged_object_in_the_store_is_refused_at_once(manager: StateManager) -> None:
    one = pack(manager, 5)
    manager.put(PackedState(one.ref, one.data[:-1]))
    with pytest.raises(DamagedObject):
        Retrieval(manager, unreachable, [handle_of(one.ref, source=None)], lambda _: True).attempt()


def test_a_load_that_waits_for_a_lost_source_does_not_delay_its_correction(manager: StateManager) -> None:
    lost, older = pack(manager, 5), pack(manager, 5, {"n": "older"})
    manager.put(older)
    arrived: list[dict[UnitHandle, Any]] = []
    recorder = Recorder()
    loader = make_loader(context_of(recorder, store_retry_seconds=30.0), manager)
    nowhere = handle_of(lost.ref, source="nowhere:1")
    loader.load([nowhere], lambda found, _: arrived.append(found))
    correction = handle_of(older.ref, source=None)
    loader.load([correction], lambda found, _: arrived.append(found))
    wait_until(lambda: len(arrived) == 2)
    found = [{handle: saved.state for handle, saved in one.items()} for one in arrived]
    assert {correction: {"n": "older"}} in found
    assert {} in found
    assert not recorder.failures
    loader.close()


def test_only_a_throttled_load_waits_for_its_share_of_the_bytes(manager: StateManager) -> None:
    states = [pack(manager, number) for number in range(3)]
    for state in states:
        manager.put(state)
    background = StateManager(manager._store, manager._secret, "moved", threads=1)
    context = context_of()
    throttle = CopyThrottle(1e-3, context.closing)  # the second state comes after days
    loader = StateLoader(context, manager, background, throttle)
    arrived: list[int] = []
    loader.load([handle_of(state.ref, None) for state in states], lambda _found, _: arrived.append(-1), throttled=True)
    for state in states:
        loader.load([handle_of(state.ref, None)], lambda found, _: arrived.extend(one.unit.task for one in found))
    wait_until(lambda: len(arrived) == 3)
    assert sorted(arrived) == [0, 1, 2]
    context.closing.set()
    loader.close()
    background.close()


def test_a_throttled_load_brings_every_state(manager: StateManager) -> None:
    states = [pack(manager, number) for number in range(3)]
    for state in states:
        manager.put(state)
    loader = make_loader(context_of(), manager, bytes_per_second=1e9)
    found: dict[int, Any] = {}
    loader.load(
        [handle_of(state.ref, None) for state in states],
        lambda states, _: found.update({handle.unit.task: one and one.state for handle, one in states.items()}),
        throttled=True,
    )
    wait_until(lambda: len(found) == 3)
    assert found == {0: {"n": 0}, 1: {"n": 1}, 2: {"n": 2}}
    loader.close()


def test_a_throttled_load_of_many_bytes_is_used_in_portions(
    manager: StateManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the first standbys follow long before the last has arrived."""
    states = [pack(manager, number) for number in range(5)]
    for state in states:
        manager.put(state)
    monkeypatch.setattr(state_loader, "_PORTION_BYTES", 2 * states[0].ref.size)
    loader = make_loader(context_of(), manager, bytes_per_second=1e9)
    arrived: list[list[int]] = []
    handles = [empty_handle(9), *(handle_of(state.ref, None) for state in states)]

    def use(found: dict[UnitHandle, SavedState | None], _: int) -> None:
        arrived.append(sorted(handle.unit.task for handle in found))

    loader.load(handles, use, throttled=True)
    wait_until(lambda: sum(map(len, arrived)) == 6)
    assert arrived == [[0, 1, 9], [2, 3], [4]]
    arrived.clear()
    loader.load(handles, use)
    wait_until(lambda: bool(arrived))
    assert arrived == [[0, 1, 2, 3, 4, 9]]
    loader.close()


def test_states_that_newer_ones_have_replaced_are_missing_and_the_others_arrive(manager: StateManager) -> None:
    here, gone = pack(manager, 1), pack(manager, 2)
    manager.put(here)
    found: dict[UnitHandle, Any] = {}
    missing: list[UnitHandle] = []
    recorder = Recorder()
    loader = make_loader(context_of(recorder), manager)
    handles = [handle_of(one.ref, source=None) for one in (here, gone)]
    loader.load(handles, lambda states, _: found.update(states), on_missing=missing.extend)
    wait_until(lambda: bool(found))
    assert {handle: saved.state for handle, saved in found.items()} == {handles[0]: {"n": 1}}
    assert missing == [handles[1]]
    assert not recorder.failures
    loader.close()


def test_a_missing_state_of_a_unit_that_no_other_node_serves_ends_the_node(manager: StateManager) -> None:
    gone = handle_of(pack(manager, 2).ref, source=None)
    recorder = Recorder()
    loader = make_loader(context_of(recorder), manager)
    loader.load([gone], lambda *_: None, "e7")
    wait_until(lambda: bool(recorder.failures))
    [(error, cause)] = recorder.failures
    assert isinstance(error, ObjectMissing)
    assert cause == "e7"
    assert not recorder.woken.is_set()
    loader.close()


def test_a_damaged_state_is_missing_where_another_node_serves_the_unit(
    manager: StateManager, caplog: pytest.LogCaptureFixture
) -> None:
    """Its owner has the state, and saves it again: a damaged copy must not end the job that needs it least."""
    damaged, here = pack(manager, 1), pack(manager, 2)
    manager.put(PackedState(damaged.ref, damaged.data[:-1]))
    manager.put(here)
    found: dict[UnitHandle, SavedState | None] = {}
    missing: list[UnitHandle] = []
    recorder = Recorder()
    loader = make_loader(context_of(recorder), manager)
    handles = [handle_of(one.ref, source=None) for one in (damaged, here)]
    loader.load(handles, lambda states, _: found.update(states), on_missing=missing.extend)
    wait_until(lambda: bool(found))
    assert (missing, list(found)) == ([handles[0]], [handles[1]])
    assert not recorder.failures
    assert "cannot follow a unit until its owner has saved it again" in caplog.text
    loader.close()


def test_a_damaged_state_of_a_unit_that_no_other_node_serves_ends_the_node(manager: StateManager) -> None:
    damaged = pack(manager, 1)
    manager.put(PackedState(damaged.ref, damaged.data[:-1]))
    recorder = Recorder()
    loader = make_loader(context_of(recorder), manager)
    loader.load([handle_of(damaged.ref, source=None)], lambda *_: None)
    wait_until(lambda: bool(recorder.failures))
    assert isinstance(recorder.failures[0][0], DamagedObject)
    loader.close()
