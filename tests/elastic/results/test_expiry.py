"""Retention: what is deleted, what is kept, and what a crash in between does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidSetting
from elastic.results import ExpiredResults, ResultLog
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import (
    SECRET,
    STAGE,
    Crash,
    CrashingStore,
    CrashPlan,
    expected,
    publish_batches,
    published_log,
    write_results,
)


def objects(store: MemoryStore) -> list[str]:
    return [entry.key for entry in store.list("operators/job/results/data/")]


def named(log: ResultLog, batches: range) -> set[str]:
    return {ref.key for batch in batches for ref in log.index(batch).refs}


def test_the_newest_batches_are_kept_and_all_others_deleted(store: MemoryStore) -> None:
    log = published_log(store, 10)
    gone = log.expire(keep=4)
    assert gone.batches == 6
    assert log.poll() == log.known == range(6, 10)
    assert ResultLog(store, SECRET, "job").poll() == range(6, 10)
    assert set(objects(store)) == named(log, range(6, 10))
    assert [log.read(batch, STAGE).to_pylist() for batch in range(6, 10)] == [expected(batch) for batch in range(6, 10)]


def test_what_was_deleted_is_counted(store: MemoryStore) -> None:
    log = published_log(store, 10)
    old = [ref for batch in range(9) for ref in log.index(batch).refs]
    assert log.expire(keep=1) == ExpiredResults(9, len(old), sum(ref.size for ref in old))
    assert log.expire(keep=1) == ExpiredResults()


def test_objects_that_no_index_names_are_deleted(store: MemoryStore) -> None:
    log = published_log(store, 4)
    write_results(log, 3)  # a second attempt, by another node
    assert ResultLog(store, SECRET, "job").expire(keep=10).objects == 4
    assert set(objects(store)) == named(log, range(4))


def test_results_of_an_unpublished_batch_are_kept(store: MemoryStore) -> None:
    log = published_log(store, 3)
    refs = write_results(log, 3)
    log.expire(keep=1)
    log.publish(3, refs, 0)
    assert log.read(3, STAGE).to_pylist() == expected(3)


def test_batches_that_a_sink_still_needs_are_kept(store: MemoryStore) -> None:
    log = published_log(store, 10)
    log.expire(keep=2, needed_from=5)
    assert log.poll() == range(5, 10)
    log.expire(keep=2, needed_from=9)
    assert log.poll() == range(8, 10)


def test_the_newest_batch_cannot_expire(store: MemoryStore) -> None:
    with pytest.raises(InvalidSetting):
        published_log(store, 3).expire(keep=0)
    assert ResultLog(store, SECRET, "empty").expire(keep=1) == ExpiredResults()


def test_a_stray_index_below_the_range_is_removed(store: MemoryStore) -> None:
    log = published_log(store, 10)
    index = store.get("operators/job/results/index/000000000000.index")
    log.expire(keep=2)
    store.put("operators/job/results/index/000000000000.index", index)
    assert ResultLog(store, SECRET, "job").poll() == range(8, 10)
    log.expire(keep=2)
    assert len(list(store.list("operators/job/results/index/"))) == 2


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_repeated_and_unpublished_writes_do_not_accumulate(chance: random.Random, keep: int) -> None:
    store = MemoryStore()
    logs = [ResultLog(store, SECRET, "job") for _ in range(2)]
    for batch in range(10):
        if chance.random() < 0.5:
            write_results(chance.choice(logs), batch)  # an attempt that is never published
        chance.choice(logs).publish(batch, write_results(chance.choice(logs), batch), 0)
        if chance.random() < 0.3:
            log = chance.choice(logs)
            log.expire(keep)
            there = range(max(0, batch + 1 - keep), batch + 1)
            assert ResultLog(store, SECRET, "job").poll() == there
            assert [log.read(number, STAGE).to_pylist() for number in there] == list(map(expected, there))
    # One that has not swept yet finds everything; nothing but what is named is left.
    fresh = ResultLog(store, SECRET, "job")
    fresh.expire(keep)
    assert set(objects(store)) == named(fresh, fresh.poll())


def _expired_with(plan: CrashPlan) -> tuple[CrashingStore, bool]:
    store = CrashingStore(CrashPlan())
    log = published_log(store, 8)
    write_results(log, 7)
    store._plan = plan
    try:
        ResultLog(store, SECRET, "job").expire(keep=3)
    except Crash:
        return store, True
    return store, False


def test_a_crash_at_any_point_harms_no_batch_that_is_still_there_and_the_next_expiry_cleans_up() -> None:
    counting = CrashPlan()
    _expired_with(counting)
    assert counting.operations > 10
    for operation in range(counting.operations):
        for takes_effect in (False, True):
            store, crashed = _expired_with(CrashPlan([(operation, takes_effect)]))
            assert crashed
            survivor = ResultLog(store, SECRET, "job")
            there = survivor.poll()
            assert set(range(5, 8)) <= set(there)
            assert [survivor.read(batch, STAGE).to_pylist() for batch in there] == list(map(expected, there))
            survivor.expire(keep=3)
            assert survivor.poll() == range(5, 8)
            assert set(objects(store)) == named(survivor, range(5, 8))
            publish_batches(survivor, 9)
            assert survivor.read(8, STAGE).to_pylist() == expected(8)
