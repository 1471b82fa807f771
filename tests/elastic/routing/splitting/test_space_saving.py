"""SpaceSaving against plain counts and against the version with lists."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing.splitting import SpaceSaving
from elastic.routing.splitting.reference import ReferenceSketch
from tests.elastic.routing.splitting.streams import Hashes

BATCHES = st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=6)
CAPACITIES = st.integers(1, 12)
FEW = 2**43  # keys whose slots are neighbours: slots are chosen by bits from the 20th on


def hashes(keys: list[int]) -> Hashes:
    return np.array(keys, np.uint64) * np.uint64(FEW // 8)


def add(sketch: SpaceSaving, batch: list[int], kernel: str) -> None:
    (sketch.add if kernel == "compiled" else sketch.add_batch)(hashes(batch))


@pytest.mark.parametrize("kernel", ["compiled", "numpy"])
@given(BATCHES, CAPACITIES)
def test_counts_are_bounds_and_heavy_keys_have_counters(kernel: str, batches: list[list[int]], capacity: int) -> None:
    sketch = SpaceSaving(capacity)
    for batch in batches:
        add(sketch, batch, kernel)
    exact = Counter(hashes([key for batch in batches for key in batch]).tolist())
    found = sketch.heaviest()
    assert sketch.rows == exact.total()
    assert len(found.hashes) == len(set(found.hashes.tolist())) == min(capacity, len(exact))
    assert (np.diff(found.counts) <= 0).all()
    for key_hash, count, error in zip(*(column.tolist() for column in found), strict=True):
        assert count - error <= exact[key_hash] <= count
        assert error <= sketch.rows / capacity
    assert {key for key, rows in exact.items() if rows > sketch.rows / capacity} <= set(found.hashes.tolist())


@given(BATCHES, CAPACITIES)
def test_the_compiled_loop_equals_the_version_with_lists(batches: list[list[int]], capacity: int) -> None:
    pytest.importorskip("numba")
    sketch, plain = SpaceSaving(capacity), ReferenceSketch(capacity)
    for number, batch in enumerate(batches):
        sketch.add(hashes(batch))
        if number % 2:
            sketch.heaviest()  # reading must not change what comes after
        for key_hash in hashes(batch).tolist():
            plain.count_row(key_hash)
    found = sketch.heaviest()
    expected = sorted(zip(plain.hashes, plain.counts, plain.errors, strict=True), key=lambda entry: -entry[1])
    assert [*zip(*(column.tolist() for column in found), strict=True)] == expected


def test_only_keys_with_enough_rows_are_returned() -> None:
    sketch = SpaceSaving(10)
    sketch.add(hashes([1, 2, 2, 3, 3, 3]))
    assert sketch.heaviest(2).hashes.tolist() == hashes([3, 2]).tolist()
    assert sketch.heaviest(3).counts.tolist() == [3]


@given(BATCHES, CAPACITIES)
def test_halved_counts_bound_half_of_the_rows(batches: list[list[int]], capacity: int) -> None:
    sketch = SpaceSaving(capacity)
    rows: Counter[int] = Counter()
    for batch in batches:
        sketch.add(hashes(batch))
        sketch.halve()
        rows.update(hashes(batch).tolist())
        for key in rows:
            rows[key] /= 2  # type: ignore[assignment]
    found = sketch.heaviest()
    assert len(batches) == 0 or sketch.rows - 1 <= rows.total() <= sketch.rows
    for key_hash, count, error in zip(*(column.tolist() for column in found), strict=True):
        assert count - error <= rows[key_hash] <= count
        assert error <= sketch.rows / capacity + 2


def test_a_sketch_without_counters_is_refused() -> None:
    with pytest.raises(InvalidJob, match=r"with 0 counters\. Use at least one"):
        SpaceSaving(0)
