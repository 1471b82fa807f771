"""The result log: results are written, then published in order, exactly once."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import ResultsExpired
from elastic.results import UNIT, BatchIndex, ResultLog, ResultRef
from elastic.results.errors import BatchOutOfOrder, DuplicateResults, NotPublished
from storage.codec import Secret
from storage.errors import ForeignObject, ObjectMissing
from storage.state import TASKS_PER_STAGE
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.elastic.results.world import (
    SECRET,
    STAGE,
    CountingStore,
    expected,
    publish_batches,
    published_log,
    rows,
    write_results,
)


@pytest.fixture
def log(any_store: Store, secret: Secret) -> ResultLog:
    return ResultLog(any_store, secret, "job")


def test_what_is_written_cannot_be_read_before_it_is_published(log: ResultLog) -> None:
    refs = write_results(log, 0)
    assert log.poll() == range(0)
    with pytest.raises(NotPublished):
        log.read(0, STAGE)
    assert log.publish(0, refs, timestamp_ms=5)
    assert log.poll() == range(1)
    assert log.read(0, STAGE).to_pylist() == expected(0)
    assert log.index(0).timestamp_ms == 5


def test_results_come_with_the_types_that_readers_expect(log: ResultLog) -> None:
    log.publish(0, write_results(log, 0), 0)
    assert log.read(0, STAGE).schema == pa.schema(
        [("value", pa.int64()), ("_batch", pa.int64()), ("_task", pa.int32())]
    )


def test_another_process_reads_the_same_results(any_store: Store, secret: Secret) -> None:
    publish_batches(ResultLog(any_store, secret, "job"), 6)
    reader = ResultLog(any_store, secret, "job")
    assert reader.poll() == range(6)
    assert [reader.read(batch, STAGE).to_pylist() for batch in range(6)] == [expected(batch) for batch in range(6)]


def test_jobs_of_one_store_do_not_see_each_other(store: MemoryStore) -> None:
    published_log(store, 3)
    assert ResultLog(store, SECRET, "another").poll() == range(0)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)), max_size=8
    ),
    st.randoms(use_true_random=False),
)
def test_rows_are_in_order_of_units_then_rounds_then_as_they_were_emitted(
    steps: list[tuple[int, list[int]]], chance: random.Random
) -> None:
    log = ResultLog(MemoryStore(), SECRET, "job")
    taken: set[tuple[int, int]] = set()
    refs, made = [], []
    for round_, units in steps:
        mine = [unit for unit in units if (round_, unit) not in taken]
        taken.update((round_, unit) for unit in mine)
        by_row = [unit for unit in mine for _ in range(chance.randrange(3))]
        chance.shuffle(by_row)
        values = [chance.randrange(1_000) for _ in by_row]
        made += [(unit, round_, n, value) for n, (unit, value) in enumerate(zip(by_row, values, strict=True))]
        refs.append(log.write(0, round_, mine, {STAGE: rows(by_row, values)}))
    chance.shuffle(refs)
    log.publish(0, refs, 0)
    found = log.read(0, STAGE)
    in_order = sorted(made, key=lambda row: row[:3])
    assert found["_task"].to_pylist() == [unit for unit, *_ in in_order]
    assert (found["value"].to_pylist() if in_order else []) == [value for *_, value in in_order]


def test_a_stage_reads_its_own_rows_only(log: ResultLog) -> None:
    first, second = rows([2], [20]), rows([TASKS_PER_STAGE + 2], [21])
    log.publish(0, [log.write(0, 0, [2, TASKS_PER_STAGE + 2], {"first": first, "second": second})], 0)
    assert log.read(0, "first").to_pylist() == [{"value": 20, "_batch": 0, "_task": 2}]
    assert log.read(0, "second").to_pylist() == [{"value": 21, "_batch": 0, "_task": 2}]
    assert log.read(0, "third").num_rows == 0


def test_results_without_rows_cost_no_object_and_no_put() -> None:
    store = CountingStore()
    log = ResultLog(store, SECRET, "job")
    ref = log.write(0, 0, [1, 2], {STAGE: rows([], [])})
    assert (ref.key, ref.rows, ref.size) == ("", 0, 0)
    assert store.pop_requests() == {}
    log.publish(0, [ref], 0)
    assert log.read(0, STAGE).num_rows == 0
    assert log.index(0).refs == ()


def test_quarantined_rows_are_kept_apart(log: ResultLog) -> None:
    failed = pa.table({"row": ["{}"], "error": ["boom"], UNIT: pa.array([7], pa.int64())})
    refs = [log.write(0, 0, [7], {STAGE: rows([7], [1])}, failed), log.write(0, 1, [7], {}, failed)]
    log.publish(0, refs, 0)
    log.publish(1, [], 0)
    row = {"row": "{}", "error": "boom", "_batch": 0, "_task": 7}
    assert log.read_quarantined(0).to_pylist() == [row, row]
    assert log.read(0, STAGE).num_rows == 1
    assert log.read_quarantined(1).num_rows == 0


def test_a_batch_is_published_once_even_if_two_drivers_try(log: ResultLog, any_store: Store, secret: Secret) -> None:
    first, second = ResultLog(any_store, secret, "job"), ResultLog(any_store, secret, "job")
    kept = write_results(first, 0)
    assert first.publish(0, kept, 1)
    assert not second.publish(0, write_results(second, 0), 2)
    assert not first.publish(0, [], 3)
    assert log.index(0) == BatchIndex(0, 1, tuple(kept))


def test_of_two_racing_drivers_one_publishes_each_batch(any_store: Store, secret: Secret) -> None:
    batches = 12
    logs = [ResultLog(any_store, secret, "job") for _ in range(2)]
    together = threading.Barrier(2)

    def driver(log: ResultLog) -> list[tuple[bool, list[ResultRef]]]:
        tried = []
        for batch in range(batches):
            refs = write_results(log, batch)
            together.wait()
            tried.append((log.publish(batch, refs, batch), refs))
        return tried

    with ThreadPoolExecutor(2) as executor:
        one, other = executor.map(driver, logs)
    reader = ResultLog(any_store, secret, "job")
    for batch, tries in enumerate(zip(one, other, strict=True)):
        winners = [refs for won, refs in tries if won]
        assert len(winners) == 1
        assert reader.index(batch).refs == tuple(ref for ref in winners[0] if ref.size)
        assert reader.read(batch, STAGE).to_pylist() == expected(batch)


def test_a_batch_cannot_be_published_before_its_predecessor(log: ResultLog) -> None:
    log.publish(0, [], 0)
    with pytest.raises(BatchOutOfOrder) as refused:
        log.publish(2, [], 0)
    assert (refused.value.batch, refused.value.expected) == (2, 1)
    assert log.poll() == range(1)
    assert log.publish(1, [], 0)
    assert log.publish(2, [], 0)


def test_a_driver_continues_after_batches_that_another_published(store: MemoryStore) -> None:
    one, other = ResultLog(store, SECRET, "job"), ResultLog(store, SECRET, "job")
    one.publish(0, [], 0)
    assert not other.publish(0, [], 0)
    for batch in range(1, 5):
        one.publish(batch, [], 0)
    assert other.publish(5, [], 0)
    assert not one.publish(5, [], 0)


def test_a_log_may_begin_with_any_batch(store: MemoryStore) -> None:
    log = ResultLog(store, SECRET, "job")
    assert log.publish(17, [], 0)
    assert log.poll() == range(17, 18)


def test_publishing_costs_one_request() -> None:
    store = CountingStore()
    log = published_log(store, 1)
    store.pop_requests()
    log.publish(1, [], 0)
    assert store.pop_requests() == {"put": 1}


def test_the_same_round_of_a_unit_cannot_be_published_twice(log: ResultLog) -> None:
    refs = [log.write(0, 1, units, {STAGE: rows(units[:1], [1])}) for units in ([1, 2], [2, 3])]
    with pytest.raises(DuplicateResults) as refused:
        log.publish(0, refs, 0)
    assert (refused.value.round, refused.value.unit_number) == (1, 2)
    assert log.poll() == range(0)


def test_results_of_another_batch_cannot_be_published(log: ResultLog) -> None:
    with pytest.raises(ValueError, match="does not belong to batch 1"):
        log.publish(1, write_results(log, 0), 0)


def test_a_ref_survives_json() -> None:
    ref = ResultRef("a/b.rows", 3, 1, (4, 5), 6, 7, 8)
    assert ResultRef.from_json(ref.to_json()) == ref


@pytest.mark.parametrize(("key", "count", "size"), [("", 1, 0), ("", 0, 9), ("a/b.rows", 0, 9), ("a/b.rows", 3, 0)])
def test_a_ref_has_an_object_if_and_only_if_it_has_rows(key: str, count: int, size: int) -> None:
    with pytest.raises(ValueError, match="Use the ref that write"):
        ResultRef(key, 0, 0, (1,), count, size)


def test_results_of_another_application_are_refused(store: MemoryStore) -> None:
    published_log(store, 1)
    with pytest.raises(ForeignObject):
        ResultLog(store, Secret.random(), "job").index(0)


def test_a_reader_behind_the_retention_gets_results_expired(store: MemoryStore) -> None:
    log = published_log(store, 6)
    slow = ResultLog(store, SECRET, "job")
    refs = slow.index(0).refs
    log.expire(keep=2)
    readings: list[Callable[[], object]] = [
        lambda: slow.read(0, STAGE),
        lambda: slow.read_objects(refs, STAGE),
        lambda: slow.read_quarantined(1),
        lambda: log.read(3, STAGE),
    ]
    for reading in readings:
        with pytest.raises(ResultsExpired) as gone:
            reading()
        assert gone.value.oldest == 4


def test_a_result_object_that_is_lost_is_not_called_expired(store: MemoryStore) -> None:
    log = published_log(store, 1)
    store.delete([log.index(0).refs[0].key])
    with pytest.raises(ObjectMissing):
        log.read(0, STAGE)


def test_an_identity_is_created_once_and_differs_after_a_fresh_start(any_store: Store, secret: Secret) -> None:
    with ThreadPoolExecutor(4) as executor:
        found = set(executor.map(lambda _: ResultLog(any_store, secret, "job").read_identity(), range(8)))
    assert len(found) == 1
    any_store.delete([entry.key for entry in any_store.list()])
    assert ResultLog(any_store, secret, "job").read_identity() not in found
