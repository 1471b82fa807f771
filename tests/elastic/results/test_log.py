"""The result log: written, then published, in order, once."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import ResultsExpired
from elastic.results import BatchIndex, ResultLog, ResultRef
from elastic.results.errors import DoubleResults, NotPublished, OutOfOrder
from elastic.routing.slots import SLOTS_PER_STAGE
from storage.codec import Secret
from storage.errors import ForeignObject, ObjectMissing
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.elastic.results.world import (
    SECRET,
    STAGE,
    CountingStore,
    expected,
    published_log,
    rows,
    run_controller,
    written,
)


@pytest.fixture
def log(any_store: Store, secret: Secret) -> ResultLog:
    return ResultLog(any_store, secret, "job")


def test_what_is_written_cannot_be_read_before_it_is_published(log: ResultLog) -> None:
    refs = written(log, 0)
    assert log.published() == range(0)
    with pytest.raises(NotPublished):
        log.read(0, STAGE)
    assert log.publish(0, refs, timestamp_ms=5)
    assert log.published() == range(1)
    assert log.read(0, STAGE).to_pylist() == expected(0)
    assert log.index(0).timestamp_ms == 5


def test_results_come_with_the_types_that_readers_expect(log: ResultLog) -> None:
    log.publish(0, written(log, 0), 0)
    assert log.read(0, STAGE).schema == pa.schema(
        [("value", pa.int64()), ("_batch", pa.int64()), ("_task", pa.int32())]
    )


def test_another_process_reads_the_same_results(any_store: Store, secret: Secret) -> None:
    run_controller(ResultLog(any_store, secret, "job"), 6)
    reader = ResultLog(any_store, secret, "job")
    assert reader.published() == range(6)
    assert [reader.read(batch, STAGE).to_pylist() for batch in range(6)] == [expected(batch) for batch in range(6)]


def test_jobs_of_one_store_do_not_see_each_other(store: MemoryStore) -> None:
    published_log(store, 3)
    assert ResultLog(store, SECRET, "another").published() == range(0)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True)), max_size=8
    ),
    st.randoms(use_true_random=False),
)
def test_rows_come_in_order_of_slots_then_rounds_then_as_they_were_made(
    steps: list[tuple[int, list[int]]], chance: random.Random
) -> None:
    log = ResultLog(MemoryStore(), SECRET, "job")
    taken: set[tuple[int, int]] = set()
    refs, made = [], []
    for round_, slots in steps:
        mine = [slot for slot in slots if (round_, slot) not in taken]
        taken.update((round_, slot) for slot in mine)
        by_row = [slot for slot in mine for _ in range(chance.randrange(3))]
        chance.shuffle(by_row)
        values = [chance.randrange(1_000) for _ in by_row]
        made += [(slot, round_, n, value) for n, (slot, value) in enumerate(zip(by_row, values, strict=True))]
        refs.append(log.write(0, round_, mine, {STAGE: rows(by_row, values)}))
    chance.shuffle(refs)
    log.publish(0, refs, 0)
    found = log.read(0, STAGE)
    in_order = sorted(made, key=lambda row: row[:3])
    assert found["_task"].to_pylist() == [slot for slot, *_ in in_order]
    assert (found["value"].to_pylist() if in_order else []) == [value for *_, value in in_order]


def test_a_stage_reads_its_own_rows_only(log: ResultLog) -> None:
    first, second = rows([2], [20]), rows([SLOTS_PER_STAGE + 2], [21])
    log.publish(0, [log.write(0, 0, [2, SLOTS_PER_STAGE + 2], {"first": first, "second": second})], 0)
    assert log.read(0, "first").to_pylist() == [{"value": 20, "_batch": 0, "_task": 2}]
    assert log.read(0, "second").to_pylist() == [{"value": 21, "_batch": 0, "_task": 2}]
    assert log.read(0, "third").num_rows == 0


def test_results_without_rows_cost_no_object_and_no_put() -> None:
    store = CountingStore()
    log = ResultLog(store, SECRET, "job")
    ref = log.write(0, 0, [1, 2], {STAGE: rows([], [])})
    assert (ref.key, ref.rows, ref.size) == ("", 0, 0)
    assert store.taken() == {}
    log.publish(0, [ref], 0)
    assert log.read(0, STAGE).num_rows == 0
    assert log.index(0).refs == ()


def test_quarantined_rows_are_kept_apart(log: ResultLog) -> None:
    failed = pa.table({"row": ["{}"], "error": ["boom"], "_slot": pa.array([7], pa.int64())})
    refs = [log.write(0, 0, [7], {STAGE: rows([7], [1])}, failed), log.write(0, 1, [7], {}, failed)]
    log.publish(0, refs, 0)
    log.publish(1, [], 0)
    row = {"row": "{}", "error": "boom", "_batch": 0, "_task": 7}
    assert log.quarantined(0).to_pylist() == [row, row]
    assert log.read(0, STAGE).num_rows == 1
    assert log.quarantined(1).num_rows == 0


def test_a_batch_is_published_once_whoever_tries(log: ResultLog, any_store: Store, secret: Secret) -> None:
    first, second = ResultLog(any_store, secret, "job"), ResultLog(any_store, secret, "job")
    kept = written(first, 0)
    assert first.publish(0, kept, 1)
    assert not second.publish(0, written(second, 0), 2)
    assert not first.publish(0, [], 3)
    assert log.index(0) == BatchIndex(0, 1, tuple(kept))


def test_two_controllers_that_race_publish_one_set_each_time(any_store: Store, secret: Secret) -> None:
    batches = 12
    logs = [ResultLog(any_store, secret, "job") for _ in range(2)]
    together = threading.Barrier(2)

    def controller(log: ResultLog) -> list[tuple[bool, list[ResultRef]]]:
        tried = []
        for batch in range(batches):
            refs = written(log, batch)
            together.wait()
            tried.append((log.publish(batch, refs, batch), refs))
        return tried

    with ThreadPoolExecutor(2) as executor:
        one, other = executor.map(controller, logs)
    reader = ResultLog(any_store, secret, "job")
    for batch, tries in enumerate(zip(one, other, strict=True)):
        winners = [refs for won, refs in tries if won]
        assert len(winners) == 1
        assert reader.index(batch).refs == tuple(ref for ref in winners[0] if ref.size)
        assert reader.read(batch, STAGE).to_pylist() == expected(batch)


def test_a_batch_cannot_be_published_before_the_one_that_precedes_it(log: ResultLog) -> None:
    log.publish(0, [], 0)
    with pytest.raises(OutOfOrder) as refused:
        log.publish(2, [], 0)
    assert (refused.value.batch, refused.value.expected) == (2, 1)
    assert log.published() == range(1)
    assert log.publish(1, [], 0)
    assert log.publish(2, [], 0)


def test_a_controller_that_missed_batches_of_another_goes_on_after_them(store: MemoryStore) -> None:
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
    assert log.published() == range(17, 18)


def test_publishing_costs_one_request() -> None:
    store = CountingStore()
    log = published_log(store, 1)
    store.taken()
    log.publish(1, [], 0)
    assert store.taken() == {"put": 1}


def test_the_same_step_of_a_slot_cannot_be_published_twice(log: ResultLog) -> None:
    refs = [log.write(0, 1, slots, {STAGE: rows(slots[:1], [1])}) for slots in ([1, 2], [2, 3])]
    with pytest.raises(DoubleResults) as refused:
        log.publish(0, refs, 0)
    assert (refused.value.round, refused.value.slot) == (1, 2)
    assert log.published() == range(0)


def test_results_of_another_batch_cannot_be_published(log: ResultLog) -> None:
    with pytest.raises(ValueError, match="not of batch 1"):
        log.publish(1, written(log, 0), 0)


def test_a_ref_survives_json() -> None:
    ref = ResultRef("a/b.rows", 3, 1, (4, 5), 6, 7, 8)
    assert ResultRef.from_json(ref.to_json()) == ref


@pytest.mark.parametrize(("key", "count", "size"), [("", 1, 0), ("", 0, 9), ("a/b.rows", 0, 9), ("a/b.rows", 3, 0)])
def test_a_ref_has_an_object_if_and_only_if_it_has_rows(key: str, count: int, size: int) -> None:
    with pytest.raises(ValueError, match="Use what write returned"):
        ResultRef(key, 0, 0, (1,), count, size)


def test_results_of_another_application_are_refused(store: MemoryStore) -> None:
    published_log(store, 1)
    with pytest.raises(ForeignObject):
        ResultLog(store, Secret.random(), "job").index(0)


def test_a_reader_that_is_overtaken_by_retention_is_told_so(store: MemoryStore) -> None:
    log = published_log(store, 6)
    slow = ResultLog(store, SECRET, "job")
    refs = slow.index(0).refs
    log.expire(keep=2)
    readings: list[Callable[[], object]] = [
        lambda: slow.read(0, STAGE),
        lambda: slow.read_objects(refs, STAGE),
        lambda: slow.quarantined(1),
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


def test_an_identity_is_made_once_and_is_another_after_a_fresh_start(any_store: Store, secret: Secret) -> None:
    with ThreadPoolExecutor(4) as executor:
        found = set(executor.map(lambda _: ResultLog(any_store, secret, "job").identity(), range(8)))
    assert len(found) == 1
    any_store.delete([entry.key for entry in any_store.list()])
    assert ResultLog(any_store, secret, "job").identity() not in found
