"""Counting rows by the hash of their key, against a plain dict."""

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing import key_counter
from elastic.routing.key_counter import KeyCounter

Hashes = npt.NDArray[np.int64]

KEYS = st.one_of(st.integers(-8, 8), st.integers(-(2**63), 2**63 - 1))
BATCHES = st.lists(st.lists(KEYS, max_size=40), max_size=8)


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with both tables."""
    if request.param == "numpy":
        monkeypatch.setattr(key_counter, "_create_table", key_counter._SortedTable)
    else:
        pytest.importorskip("numba")


def hashes(keys: list[int]) -> Hashes:
    return np.array(keys, np.int64)


def found(counter: KeyCounter) -> dict[int, int]:
    counts = counter.counts()
    return dict(zip(counts.hashes.tolist(), counts.rows.tolist(), strict=True))


@given(BATCHES)
def test_few_keys_are_counted_exactly(batches: list[list[int]]) -> None:
    counter = KeyCounter(1_000)
    for batch in batches:
        counter.add(hashes(batch))
    exact = Counter(key for batch in batches for key in batch)
    assert found(counter) == exact
    assert (counter.rows, counter.error) == (exact.total(), 0)


@given(BATCHES, st.integers(1, 6))
def test_beyond_the_limit_no_count_is_too_high_and_none_is_off_by_more_than_the_error(
    batches: list[list[int]], limit: int
) -> None:
    counter = KeyCounter(limit)
    for batch in batches:
        counter.add(hashes(batch))
    exact = Counter(key for batch in batches for key in batch)
    counted = found(counter)
    assert len(counted) <= limit
    assert all(counted.get(key, 0) <= rows <= counted.get(key, 0) + counter.error for key, rows in exact.items())
    assert counter.rows == exact.total()
    assert counter.error <= 4 * counter.rows / limit


@given(st.sets(KEYS, max_size=5), st.integers(0, 2**32))
def test_protected_keys_are_counted_exactly_beyond_the_limit(protected: set[int], seed: int) -> None:
    counter = KeyCounter(1)
    counter.clear(1, hashes(sorted(protected)))
    rng = np.random.default_rng(seed)
    noise = rng.integers(-(2**63), 2**63 - 1, 3_000)
    rows = rng.permutation(np.concatenate([noise, hashes([*protected, *protected])]))
    counter.add(rows)
    exact, counted = Counter(rows.tolist()), found(counter)
    assert counter.error > 0
    assert {key: counted[key] for key in protected} == {key: exact[key] for key in protected}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 100)), max_size=40))
def test_groups_of_rows_may_have_their_time(rows: list[tuple[int, int, int]]) -> None:
    counter = KeyCounter(100)
    counter.add(hashes([7]))  # a row without a time, before the first with one
    counter.add_groups(
        hashes([key for key, _, _ in rows]), np.array([row[1:] for row in rows], np.int64).reshape(-1, 2)
    )
    counts = counter.counts()
    nanoseconds = Counter({7: 0})
    for key, _, spent in rows:
        nanoseconds[key] += spent
    assert dict(zip(counts.hashes.tolist(), counts.nanoseconds.tolist(), strict=True)) == nanoseconds
    assert counter.nanoseconds == nanoseconds.total()
    assert counter.rows == 1 + sum(number for _, number, _ in rows)


def test_a_cleared_counter_begins_anew() -> None:
    counter = KeyCounter(10_000)
    counter.add_groups(np.arange(5_000), np.ones((5_000, 2), np.int64))
    for _ in range(3):  # each time with fewer slots
        counter.clear(10_000, hashes([]))
        assert (found(counter), counter.rows, counter.nanoseconds) == ({}, 0, 0)
        counter.add(hashes([1, 2, 2]))
    assert found(counter) == {1: 1, 2: 2}
    assert counter.counts().nanoseconds.tolist() == [0, 0]


@given(st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=4), st.integers(1, 9), st.integers(1, 20))
def test_rows_may_count_several_times_and_the_heaviest_can_be_told_from_a_histogram(
    batches: list[list[int]], weight: int, least: int
) -> None:
    counter = KeyCounter(100)
    exact: Counter[int] = Counter()
    for number, batch in enumerate(batches):
        counter.add(hashes(batch), weight if number % 2 else 1)
        exact.update({key: rows * (weight if number % 2 else 1) for key, rows in Counter(batch).items()})
    assert (found(counter), counter.rows, counter.keys) == (exact, exact.total(), len(exact))
    heavy = counter.counts(least)
    assert dict(zip(heavy.hashes.tolist(), heavy.rows.tolist(), strict=True)) == {
        key: rows for key, rows in exact.items() if rows >= least
    }
    bins = counter.histogram(weight).tolist()
    for place in range(len(bins)):
        assert sum(bins[place:]) == sum(rows >= place * weight for rows in exact.values())


def test_at_least_one_key_is_counted() -> None:
    with pytest.raises(InvalidJob, match="at least one"):
        KeyCounter(0)


@given(BATCHES, st.integers(1, 6))
def test_halved_counts_are_half_of_the_rows_within_the_error(batches: list[list[int]], limit: int) -> None:
    counter = KeyCounter(limit)
    for batch in batches:
        counter.add(hashes(batch))
    before, error = found(counter), counter.error
    counter.halve()
    assert found(counter) == {key: rows // 2 for key, rows in before.items() if rows > 1}
    exact = Counter(key for batch in batches for key in batch)
    assert counter.rows == exact.total() // 2
    assert error / 2 <= counter.error <= error / 2 + 2
    counted = found(counter)
    assert all(counted.get(key, 0) <= rows / 2 <= counted.get(key, 0) + counter.error for key, rows in exact.items())
