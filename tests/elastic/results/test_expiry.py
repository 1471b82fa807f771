"""Retention: what goes, what stays, and what a crash in the middle does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidSetting
from elastic.results import Expired, ResultLog
from storage.stores.memory import MemoryStore
from tests.elastic.results.world import (
    SECRET,
    STAGE,
    Crash,
    CrashingStore,
    Trouble,
    expected,
    published_log,
    run_controller,
    written,
)


def objects(store: MemoryStore) -> list[str]:
    return [entry.key for entry in store.list("operators/job/results/data/")]


def named(log: ResultLog, batches: range) -> set[str]:
    return {ref.key for batch in batches for ref in log.index(batch).refs}


def test_the_newest_batches_stay_whole_and_the_others_go(store: MemoryStore) -> None:
    log = published_log(store, 10)
    gone = log.expire(keep=4)
    assert gone.batches == 6
    assert log.published() == log.known == range(6, 10)
    assert ResultLog(store, SECRET, "job").published() == range(6, 10)
    assert set(objects(store)) == named(log, range(6, 10))
    assert [log.read(batch, STAGE).to_pylist() for batch in range(6, 10)] == [expected(batch) for batch in range(6, 10)]


def test_what_was_deleted_is_counted(store: MemoryStore) -> None:
    log = published_log(store, 10)
    old = [ref for batch in range(9) for ref in log.index(batch).refs]
    assert log.expire(keep=1) == Expired(9, len(old), sum(ref.size for ref in old))
    assert log.expire(keep=1) == Expired()


def test_objects_that_were_written_and_never_named_go(store: MemoryStore) -> None:
    log = published_log(store, 4)
    written(log, 3)  # by a node that did not know
    assert ResultLog(store, SECRET, "job").expire(keep=10).objects == 4
    assert set(objects(store)) == named(log, range(4))


def test_results_of_a_batch_that_is_not_published_yet_stay(store: MemoryStore) -> None:
    log = published_log(store, 3)
    refs = written(log, 3)
    log.expire(keep=1)
    log.publish(3, refs, 0)
    assert log.read(3, STAGE).to_pylist() == expected(3)


def test_what_a_sink_still_needs_stays(store: MemoryStore) -> None:
    log = published_log(store, 10)
    log.expire(keep=2, needed_from=5)
    assert log.published() == range(5, 10)
    log.expire(keep=2, needed_from=9)
    assert log.published() == range(8, 10)


def test_the_newest_batch_cannot_expire(store: MemoryStore) -> None:
    with pytest.raises(InvalidSetting):
        published_log(store, 3).expire(keep=0)
    assert ResultLog(store, SECRET, "empty").expire(keep=1) == Expired()


def test_a_stray_index_below_the_range_is_removed(store: MemoryStore) -> None:
    log = published_log(store, 10)
    index = store.get("operators/job/results/index/000000000000.index").data
    log.expire(keep=2)
    store.put("operators/job/results/index/000000000000.index", index)
    assert ResultLog(store, SECRET, "job").published() == range(8, 10)
    log.expire(keep=2)
    assert len(list(store.list("operators/job/results/index/"))) == 2


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_whatever_is_written_twice_or_in_vain_the_store_stays_bounded(chance: random.Random, keep: int) -> None:
    store = MemoryStore()
    logs = [ResultLog(store, SECRET, "job") for _ in range(2)]
    for batch in range(10):
        if chance.random() < 0.5:
            written(chance.choice(logs), batch)  # an attempt that came to nothing
        chance.choice(logs).publish(batch, written(chance.choice(logs), batch), 0)
        if chance.random() < 0.3:
            log = chance.choice(logs)
            log.expire(keep)
            there = range(max(0, batch + 1 - keep), batch + 1)
            assert ResultLog(store, SECRET, "job").published() == there
            assert [log.read(number, STAGE).to_pylist() for number in there] == list(map(expected, there))
    # One that has not swept yet finds everything; nothing but what is named is left.
    fresh = ResultLog(store, SECRET, "job")
    fresh.expire(keep)
    assert set(objects(store)) == named(fresh, fresh.published())


def _expired_with(trouble: Trouble) -> tuple[CrashingStore, bool]:
    store = CrashingStore(Trouble())
    log = published_log(store, 8)
    written(log, 7)
    store._trouble = trouble
    try:
        ResultLog(store, SECRET, "job").expire(keep=3)
    except Crash:
        return store, True
    return store, False


def test_a_crash_at_any_point_harms_no_batch_that_is_still_there_and_the_next_expiry_cleans_up() -> None:
    counting = Trouble()
    _expired_with(counting)
    assert counting.operations > 10
    for operation in range(counting.operations):
        for takes_effect in (False, True):
            store, crashed = _expired_with(Trouble([(operation, takes_effect)]))
            assert crashed
            survivor = ResultLog(store, SECRET, "job")
            there = survivor.published()
            assert set(range(5, 8)) <= set(there)
            assert [survivor.read(batch, STAGE).to_pylist() for batch in there] == list(map(expected, there))
            survivor.expire(keep=3)
            assert survivor.published() == range(5, 8)
            assert set(objects(store)) == named(survivor, range(5, 8))
            run_controller(survivor, 9)
            assert survivor.read(8, STAGE).to_pylist() == expected(8)
