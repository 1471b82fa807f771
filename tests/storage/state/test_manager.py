"""The manager: what is saved comes back, many units travel at once, and a failure stays with its unit."""

import json
import logging
import threading
import time

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from storage.codec import Secret
from storage.errors import ForeignObject, InvalidStorageInput, ObjectMissing, TransferFailed
from storage.state import Progress, Save, StateManager, StateRef, Unit
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.storage.state.doubles import TroubledStore, WatchedStore

LEASE = "000000000001-000000001-0123456789abcdef"
SECRET = Secret.of("a secret for tests only")
PATIENCE = 20.0  # seconds; reached only if something hangs


def manager(store: Store, *, threads: int = 8, budget_bytes: int = 1 << 20) -> StateManager:
    return StateManager(store, SECRET, "word counts", threads=threads, budget_bytes=budget_bytes)


def arrays(count: int, kilobytes: int) -> list[Save]:
    """States whose size is known before they are encoded."""
    return [Save(Unit.of_task(task), np.full(kilobytes * 128, task), batch=3) for task in range(count)]


@pytest.mark.parametrize("unit", [Unit.of_task(17), Unit.of_keys(17, name="hot")], ids=str)
def test_state_and_pending_records_come_back_together(any_store: Store, unit: Unit) -> None:
    pending = pa.table({"word": ["late", "later"]})
    with manager(any_store) as states:
        ref = states.save(unit, {"a": 1}, pending, batch=5, lease=LEASE)
        saved = states.load(ref)
    assert (saved.state, saved.pending_records) == ({"a": 1}, pending)
    assert saved.meta == {"unit": unit.to_json(), "batch": 5}
    assert (ref.unit, ref.batch, ref.lease) == (unit, 5, LEASE)
    assert [(ref.key, ref.size)] == list(any_store.list("operators/word=20counts/state/"))
    assert ref.key.startswith(f"operators/word=20counts/state/{LEASE}/{unit.segment}-5-")


def test_without_pending_records_there_are_none(store: MemoryStore) -> None:
    with manager(store) as states:
        assert states.load(states.save(Unit.of_task(0), [1], batch=0, lease=LEASE)).pending_records is None


def test_the_keys_of_a_set_are_kept_with_its_state(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(Unit.of_keys(2, "hot"), {}, batch=0, lease=LEASE, keys=["the", "a"])
        assert states.load(ref).meta["keys"] == ["the", "a"]


def test_a_dict_comes_as_columns_if_asked(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(Unit.of_task(0), {"a": 1, "b": 2}, batch=0, lease=LEASE)
        assert isinstance(states.load(ref, columns=True).state, pa.Table)
        (loaded,) = states.load_many([ref], columns=True).result(PATIENCE).values()
        assert isinstance(loaded.state, pa.Table)


def test_saving_the_same_again_makes_another_object(store: MemoryStore) -> None:
    with manager(store) as states:
        one, other = (states.save(Unit.of_task(0), "same", batch=0, lease=LEASE) for _ in range(2))
    assert one.key != other.key
    assert len(list(store.list())) == 2


def test_a_reference_survives_json_and_must_lie_under_its_lease(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(Unit.of_keys(1, "ü"), 1, batch=0, lease=LEASE)
    assert StateRef.from_json(json.loads(json.dumps(ref.to_json()))) == ref
    with pytest.raises(InvalidStorageInput, match="not a state saved under lease"):
        StateRef(ref.key, ref.unit, ref.batch, ref.size, "another")


def test_another_secret_is_refused(store: MemoryStore) -> None:
    with manager(store) as states:
        ref = states.save(Unit.of_task(0), {"a": 1}, batch=0, lease=LEASE)
    with StateManager(store, Secret.of("quite another secret"), "word counts") as foreign, pytest.raises(ForeignObject):
        foreign.load(ref)


@pytest.mark.parametrize("lease", ["", "../x", "000000000001", "a/b"])
def test_what_is_no_lease_is_refused_before_anything_is_saved(store: MemoryStore, lease: str) -> None:
    with manager(store) as states, pytest.raises(InvalidStorageInput, match="not the id of a lease"):
        states.save_many([Save(Unit.of_task(0), 1, batch=0)], lease=lease)
    assert list(store.list()) == []


def test_many_units_are_saved_and_loaded_in_the_order_given(any_store: Store) -> None:
    items = arrays(20, kilobytes=1)
    with manager(any_store) as states:
        refs = states.save_many(items, lease=LEASE).result(PATIENCE)
        loaded = states.load_many(refs.values()).result(PATIENCE)
    assert list(refs) == list(loaded) == [item.unit for item in items]
    for item in items:
        assert np.array_equal(loaded[item.unit].state, item.state)


@pytest.mark.parametrize("threads", [1, 8])
def test_transfers_overlap_as_far_as_there_are_threads(threads: int) -> None:
    store = WatchedStore(seconds=0.05)
    with manager(store, threads=threads) as states:
        refs = states.save_many(arrays(16, kilobytes=1), lease=LEASE).result(PATIENCE)
        saved_at_once, store.most_at_once = store.most_at_once, 0
        states.load_many(refs.values()).result(PATIENCE)
    assert (saved_at_once, store.most_at_once) == (threads, threads)


def test_a_transfer_runs_in_the_background() -> None:
    store = WatchedStore(seconds=1.0)
    with manager(store) as states:
        started = time.monotonic()
        transfer = states.save_many(arrays(1, kilobytes=1), lease=LEASE)
        assert time.monotonic() - started < 0.8
        with pytest.raises(TimeoutError, match="Ask again, or cancel"):
            transfer.result(timeout=0)
        assert len(transfer.result(PATIENCE)) == 1


@settings(max_examples=max(15, settings().max_examples // 4))
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 60))
def test_what_is_in_flight_stays_within_the_budget_unless_one_state_alone_is_larger(
    kilobytes: list[int], budget_kilobytes: int
) -> None:
    store = WatchedStore(seconds=0.0005)
    items = [
        Save(Unit.of_task(task), np.random.default_rng(task).bytes(size << 10), batch=0)
        for task, size in enumerate(kilobytes)
    ]
    overhead = 2048  # an object's header, which the estimate leaves out
    with manager(store, budget_bytes=budget_kilobytes << 10) as states:
        refs = states.save_many(items, lease=LEASE).result(PATIENCE)
        allowed = max(budget_kilobytes, *kilobytes) << 10
        assert store.most_bytes_at_once <= allowed + 8 * overhead
        assert states.budget.peak <= allowed + 8 * overhead
        store.most_bytes_at_once = 0
        states.load_many(refs.values()).result(PATIENCE)
        assert store.most_bytes_at_once <= max(budget_kilobytes << 10, *(ref.size for ref in refs.values()))
        assert states.budget.used == 0


def test_progress_is_told_after_each_unit_and_counts_bytes(store: MemoryStore) -> None:
    told: list[Progress] = []
    with manager(store) as states:
        transfer = states.save_many(arrays(10, kilobytes=2), lease=LEASE, on_progress=told.append)
        refs = transfer.result(PATIENCE)
    assert [progress.done for progress in told] == list(range(1, 11))
    assert told[-1] == transfer.progress() == Progress(10, 10, sum(ref.size for ref in refs.values()), 0)


def test_a_callback_that_raises_is_reported_and_does_no_harm(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Progress) -> None:
        raise RuntimeError("no display")

    with manager(store) as states, caplog.at_level(logging.ERROR):
        assert len(states.save_many(arrays(3, kilobytes=1), lease=LEASE, on_progress=broken).result(PATIENCE)) == 3
    assert caplog.text.count("RuntimeError: no display") == 3


def test_units_that_fail_are_named_and_the_others_are_kept() -> None:
    store = TroubledStore()
    store.trouble = lambda key: "before" if "task-00001" in key or "task-00004" in key else None
    with manager(store) as states:
        transfer = states.save_many(arrays(6, kilobytes=1), lease=LEASE)
        with pytest.raises(TransferFailed, match=r"2 of 6 units failed: task 1: .*; task 4: ") as caught:
            transfer.result(PATIENCE)
    assert set(caught.value.reasons) == {Unit.of_task(1), Unit.of_task(4)}
    assert set(caught.value.succeeded) == {Unit.of_task(task) for task in (0, 2, 3, 5)}
    assert transfer.progress().failed == 2


def test_results_come_as_they_complete_and_failures_at_the_end(store: MemoryStore) -> None:
    with manager(store) as states:
        refs = list(states.save_many(arrays(3, kilobytes=1), lease=LEASE).result(PATIENCE).values())
        store.delete([refs[1].key])
        arrived: list[Unit] = []
        with pytest.raises(TransferFailed, match="ObjectMissing") as caught:
            arrived.extend(unit for unit, _ in states.load_many(refs).results(PATIENCE))
    assert set(arrived) == {Unit.of_task(0), Unit.of_task(2)}
    assert isinstance(caught.value.reasons[Unit.of_task(1)], ObjectMissing)


def test_cancel_leaves_out_what_has_not_begun_and_finishes_the_rest() -> None:
    store = WatchedStore(seconds=0.05)
    begun = threading.Event()
    with manager(store, threads=2) as states:
        transfer = states.save_many(arrays(30, kilobytes=1), lease=LEASE, on_progress=lambda _: begun.set())
        assert begun.wait(PATIENCE)
        transfer.cancel()
        with pytest.raises(TransferFailed, match="CancelledError") as caught:
            transfer.result(PATIENCE)
    done = caught.value.succeeded
    assert 1 <= len(done) <= 6
    assert sorted(ref.key for ref in done.values()) == [entry.key for entry in store.list()]
    assert transfer.progress().done == 30


def test_a_callback_may_cancel_the_transfer() -> None:
    told: list[Progress] = []
    started = threading.Event()

    def cancel(progress: Progress) -> None:
        told.append(progress)
        started.wait(PATIENCE)
        transfer.cancel()

    with manager(WatchedStore(seconds=0.01), threads=2) as states:
        transfer = states.save_many(arrays(300, kilobytes=1), lease=LEASE, on_progress=cancel)
        started.set()
        with pytest.raises(TransferFailed):
            transfer.result(PATIENCE)
    assert [progress.done for progress in told] == list(range(1, 301))
    assert told[-1].failed > 250


def test_a_transfer_of_nothing_is_done() -> None:
    with manager(MemoryStore()) as states:
        assert states.save_many([], lease=LEASE).result(PATIENCE) == {}


def test_a_unit_twice_in_one_transfer_is_refused(store: MemoryStore) -> None:
    with manager(store) as states, pytest.raises(InvalidStorageInput, match="task 0 is twice"):
        states.save_many(arrays(1, kilobytes=1) * 2, lease=LEASE)
    assert list(store.list()) == []


def test_no_threads_are_refused() -> None:
    with pytest.raises(InvalidStorageInput, match="at least one"):
        manager(MemoryStore(), threads=0)
