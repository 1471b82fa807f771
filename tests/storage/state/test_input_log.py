"""The input log: each task gets its rows in order, and no more is fetched than that takes."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from storage.codec import HEADER_GUESS_BYTES, Secret
from storage.errors import DamagedObject, ForeignObject, InvalidStorageInput
from storage.state import LOG_OBJECT_BYTES, LOG_PART_BYTES, LOGGED_BYTES, InputLog, LogRef, UnitId
from storage.state.paths import Paths
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.storage.state.fake_stores import MeasuredStore

SECRET = Secret.of("a secret for tests only")


def log(store: Store) -> InputLog:
    return InputLog(store, SECRET, "counts")


def rows(*values: int) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.int64())})


def noise(seed: int, kilobytes: int) -> pa.Table:
    """Rows that cannot be compressed."""
    return pa.table({"value": np.random.default_rng(seed).integers(0, 2**62, kilobytes * 128)})


def test_a_task_reads_its_own_rows(any_store: Store) -> None:
    ref = log(any_store).append(3, 1, {0: rows(1, 2), 5: rows(3)})
    assert log(any_store).read(ref, [5]) == {5: rows(3)}
    assert log(any_store).read(ref, [5, 0, 9]) == {0: rows(1, 2), 5: rows(3)}
    (entry,) = any_store.list()
    assert entry.key.startswith("operators/counts/log/00000000000000000003/0000-000001-0000-")
    assert entry.size == ref.size


def test_record_batches_are_logged_like_tables_and_empty_slices_not_at_all(store: MemoryStore) -> None:
    (batch,) = rows(7).to_batches()
    ref = log(store).append(0, 0, {1: batch, 2: rows()})
    assert log(store).read(ref, [1, 2]) == {1: rows(7)}


def test_bytes_are_read_as_they_were_logged_and_take_less_than_a_table(store: MemoryStore) -> None:
    ref = log(store).append(3, 0, {1: b"some bytes", 2: b""})
    found = log(store).read(ref, [1, 2])
    assert list(found) == [1]
    assert found[1].schema.equals(LOGGED_BYTES, check_metadata=True)
    assert found[1].column(0).to_pylist() == [b"some bytes"]
    assert ref.size < log(store).append(3, 0, {1: pa.table({"bytes": [b"some bytes"]})}).size - 250


def test_what_objects_and_parts_take_is_as_plans_count_it(store: MemoryStore) -> None:
    guests, size = UnitId(0, 17, guests=True).number, 100_003
    chance = np.random.default_rng(1)
    parts = {guests + number: chance.bytes(size) for number in range(20)}
    empty, one, many = (
        log(store).append(123_456, 3, dict(list(parts.items())[:count])).size for count in (0, 1, len(parts))
    )
    assert abs(empty - LOG_OBJECT_BYTES) <= 64
    assert abs(one - empty - size - LOG_PART_BYTES) <= 64
    assert abs((many - empty) / len(parts) - size - LOG_PART_BYTES) <= 16


def test_an_append_is_never_overwritten_by_another_one_of_the_same_input(store: MemoryStore) -> None:
    first, second = (log(store).append(0, 0, {1: rows(value)}) for value in (1, 2))
    assert log(store).read(first, [1]) == {1: rows(1)}
    assert log(store).read(second, [1]) == {1: rows(2)}


@given(st.sets(st.tuples(*(st.integers(0, highest) for highest in (5, 2, 3, 2))), max_size=25))
def test_refs_sort_in_the_order_of_batch_round_partition_and_chunk(places: set[tuple[int, ...]]) -> None:
    refs = [LogRef.new(*place) for place in places]
    assert [(ref.batch, ref.round, ref.partition, ref.chunk) for ref in sorted(refs)] == sorted(places)


def test_one_task_of_many_costs_the_header_and_its_own_bytes() -> None:
    store = MeasuredStore()
    ref = log(store).append(0, 0, {task: noise(task, kilobytes=256) for task in range(64)})
    assert log(store).read(ref, [40]) == {40: noise(40, kilobytes=256)}
    assert store.requests == 2
    assert store.fetched <= HEADER_GUESS_BYTES + 260 * 1024
    assert ref.size >= 64 * 256 * 1024


def test_neighbours_are_fetched_together_and_others_apart() -> None:
    store = MeasuredStore()
    ref = log(store).append(0, 0, {task: noise(task, kilobytes=100) for task in range(20)})
    assert list(log(store).read(ref, [5, 6, 7, 15])) == [5, 6, 7, 15]
    assert store.requests == 3
    assert store.fetched <= HEADER_GUESS_BYTES + 405 * 1024


def test_a_header_longer_than_the_guess_is_fetched_in_full() -> None:
    store = MeasuredStore()
    ref = log(store).append(0, 0, {task: rows(task) for task in range(600)})
    assert log(store).read(ref, [599]) == {599: rows(599)}


def test_the_log_survives_a_restart(any_store: Store) -> None:
    ref = log(any_store).append(2, 0, {1: rows(4)}, round=1, chunk=3)
    named = LogRef.from_json(ref.to_json())
    assert (named, named.to_json()[:4]) == (ref, [2, 1, 0, 3])
    assert log(any_store).read(named, [1]) == {1: rows(4)}


def test_damage_and_another_secret_are_refused(store: MemoryStore) -> None:
    ref = log(store).append(0, 0, {1: rows(4)})
    with pytest.raises(ForeignObject):
        InputLog(store, Secret.of("quite another secret"), "counts").read(ref, [1])
    key = Paths("counts").log(ref)
    store.put(key, bytes(store.get(key)[:-1]))
    with pytest.raises(DamagedObject):
        log(store).read(ref, [1])


@pytest.mark.parametrize("place", [(-1, 0, 0, 0), (0, -1, 0, 0), (0, 0, -1, 0), (0, 0, 0, -1)])
def test_negative_numbers_are_refused(store: MemoryStore, place: tuple[int, int, int, int]) -> None:
    batch, partition, round_, chunk = place
    with pytest.raises(InvalidStorageInput, match="from 0"):
        log(store).append(batch, partition, {}, round=round_, chunk=chunk)
    assert list(store.list()) == []


def test_rows_that_are_not_arrow_are_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidStorageInput, match="Arrow"):
        log(store).append(0, 0, {1: [1, 2]})
