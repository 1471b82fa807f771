"""The manager: saved states load unchanged, many at once, and a failure affects its unit only."""

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from storage.codec import Secret, pack
from storage.errors import ForeignObject, InvalidStorageInput, ObjectMissing, TransferFailed
from storage.state import StateManager, StateRef, UnitId
from storage.state.paths import Paths
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.storage.state.fake_stores import MeasuredStore

LEASE = "000000000001-000000001-0123456789abcdef"
SECRET = Secret.of("a secret for tests only")


class InlineExecutor(Executor):
    """Runs what is submitted in the calling thread, at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as every executor does
            future.set_exception(error)
        return future


def manager(store: Store, *, threads: int = 8, budget_bytes: int = 1 << 20) -> StateManager:
    return StateManager(store, SECRET, "word counts", threads=threads, budget_bytes=budget_bytes)


def arrays(count: int, kilobytes: int) -> dict[UnitId, np.ndarray[Any, Any]]:
    """States whose size is known before they are encoded."""
    return {UnitId(0, task): np.full(kilobytes * 128, task) for task in range(count)}


def save_all(states: StateManager, items: Mapping[UnitId, object]) -> list[StateRef]:
    """Save from several threads, as nodes do."""
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(partial(states.save, batch=3, lease=LEASE), items.keys(), items.values()))


@pytest.mark.parametrize("unit", [UnitId(0, 17), UnitId(1, 17)], ids=str)
def test_a_saved_state_is_loaded_with_its_unit_and_batch(any_store: Store, unit: UnitId) -> None:
    with manager(any_store) as states:
        ref = states.save(unit, {"a": 1}, batch=5, lease=LEASE)
        saved = states.load(ref)
    assert saved.state == {"a": 1}
    assert saved.meta == {"unit": unit.to_json(), "batch": 5}
    assert (ref.unit, ref.batch, ref.lease) == (unit, 5, LEASE)
    assert [(ref.key, ref.size)] == list(any_store.list("operators/word=20counts/state/"))
    assert ref.key.startswith(f"operators/word=20counts/state/{LEASE}/{unit.segment}-5-")


def test_a_state_that_was_stored_with_pending_records_still_loads(store: MemoryStore) -> None:
    key = Paths("word counts").state(LEASE, "task-00000", 0)
    data = pack({"state": {"a": 1}, "pending": [1, 2]}, key=key, secret=SECRET, meta={"unit": [0], "batch": 0})
    store.put(key, data)
    ref = StateRef(key, UnitId(0, 0), 0, len(data), LEASE)
    with manager(store) as states:
        assert states.load(ref).state == states.load_many([ref])[ref.unit].state == {"a": 1}


def test_saving_the_same_again_creates_another_object(store: MemoryStore) -> None:
    with manager(store) as states:
        one, other = (states.save(UnitId(0, 0), "same", batch=0, lease=LEASE) for _ in range(2))
    assert one.key != other.key
    assert len(list(store.list())) == 2


def test_a_reference_survives_json_and_must_lie_under_its_lease(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(UnitId(1, 1), 1, batch=0, lease=LEASE)
    assert StateRef.from_json(json.loads(json.dumps(ref.to_json()))) == ref
    with pytest.raises(InvalidStorageInput, match="not a state saved under lease"):
        StateRef(ref.key, ref.unit, ref.batch, ref.size, "another")


def test_another_secret_is_refused(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(UnitId(0, 0), {"a": 1}, batch=0, lease=LEASE)
    with StateManager(store, Secret.of("quite another secret"), "word counts") as foreign, pytest.raises(ForeignObject):
        foreign.load(ref)


@pytest.mark.parametrize("lease", ["", "../x", "000000000001", "a/b"])
def test_what_is_no_lease_is_refused_before_anything_is_saved(store: MemoryStore, lease: str) -> None:
    with manager(store) as states:
        with pytest.raises(InvalidStorageInput, match="not the id of a lease"):
            states.save(UnitId(0, 0), 1, batch=0, lease=lease)
        with pytest.raises(InvalidStorageInput, match="not the id of a lease"):
            states.pack(UnitId(0, 0), 1, batch=0, lease=lease)
    assert list(store.list()) == []


def test_many_units_are_loaded_in_the_order_given(any_store: Store) -> None:
    items = arrays(20, kilobytes=1)
    with manager(any_store) as states:
        loaded = states.load_many(save_all(states, items))
    assert list(loaded) == list(items)
    for unit, state in items.items():
        assert np.array_equal(loaded[unit].state, state)


@pytest.mark.parametrize("threads", [1, 8])
def test_loads_overlap_as_far_as_there_are_threads(threads: int) -> None:
    store = MeasuredStore()
    with manager(store, threads=threads) as states:
        refs = save_all(states, arrays(16, kilobytes=1))
        store.seconds, store.most_at_once = 0.05, 0
        states.load_many(refs)
    assert store.most_at_once == threads


def test_with_an_executor_that_runs_inline_the_manager_starts_no_thread() -> None:
    store, loading_threads = MemoryStore(), set()

    def fetch(ref: StateRef) -> memoryview:
        loading_threads.add(threading.get_ident())
        return store.get(ref.key)

    with StateManager(store, SECRET, "word counts", executor=InlineExecutor(), budget_bytes=1) as states:
        refs = [states.save(unit, state, batch=3, lease=LEASE) for unit, state in arrays(3, kilobytes=1).items()]
        assert list(states.load_many(refs, fetch=fetch)) == [ref.unit for ref in refs]
        store.delete([refs[1].key])
        with pytest.raises(TransferFailed, match="1 of 3 units failed: task 1: ObjectMissing"):
            states.load_many(refs, fetch=fetch)
    assert loading_threads == {threading.get_ident()}


def test_closing_a_manager_leaves_an_executor_that_it_was_given_open() -> None:
    with ThreadPoolExecutor(1) as executor:
        StateManager(MemoryStore(), SECRET, "word counts", executor=executor).close()
        assert executor.submit(lambda: 7).result() == 7


@settings(max_examples=max(15, settings().max_examples // 4))
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 60))
def test_what_is_in_flight_stays_within_the_budget_unless_one_state_alone_is_larger(
    kilobytes: list[int], budget_kilobytes: int
) -> None:
    store = MeasuredStore(seconds=0.0005)
    items = {UnitId(0, task): np.random.default_rng(task).bytes(size << 10) for task, size in enumerate(kilobytes)}
    overhead = 2048  # an object's header, which the estimate leaves out
    with manager(store, budget_bytes=budget_kilobytes << 10) as states:
        refs = save_all(states, items)
        allowed = max(budget_kilobytes, *kilobytes) << 10
        assert store.most_bytes_at_once <= allowed + 8 * overhead
        assert states.budget.peak <= allowed + 8 * overhead
        store.most_bytes_at_once = 0
        states.load_many(refs)
        assert store.most_bytes_at_once <= max(budget_kilobytes << 10, *(ref.size for ref in refs))
        assert states.budget.used == 0


def test_units_that_fail_are_named_and_the_others_are_kept(store: MemoryStore) -> None:
    with manager(store) as states:
        refs = save_all(states, arrays(6, kilobytes=1))
        store.delete([refs[1].key, refs[4].key])
        with pytest.raises(TransferFailed, match=r"2 of 6 units failed: task 1: ObjectMissing.*; task 4: ") as caught:
            states.load_many(refs)
    assert set(caught.value.reasons) == {UnitId(0, 1), UnitId(0, 4)}
    assert isinstance(caught.value.reasons[UnitId(0, 1)], ObjectMissing)
    assert list(caught.value.succeeded) == [UnitId(0, task) for task in (0, 2, 3, 5)]
    assert caught.value.succeeded[UnitId(0, 5)].state[0] == 5


def test_loading_no_units_returns_nothing() -> None:
    with manager(MemoryStore()) as states:
        assert states.load_many([]) == {}


def test_a_unit_named_twice_is_refused(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(UnitId(0, 0), 1, batch=0, lease=LEASE)
        with pytest.raises(InvalidStorageInput, match="task 0 is named twice"):
            states.load_many([ref, ref])


def test_no_threads_are_refused() -> None:
    with pytest.raises(InvalidStorageInput, match="at least one"):
        manager(MemoryStore(), threads=0)
