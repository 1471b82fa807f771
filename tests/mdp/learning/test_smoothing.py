"""The prior: what rows that were never seen are taken for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdp.learning.smoothing import prior, smooth

SIZE = 5
tables = st.lists(st.integers(0, 20), min_size=SIZE**2, max_size=SIZE**2).map(
    lambda entries: np.array(entries, np.int64).reshape(SIZE, SIZE)
)


@given(tables, st.booleans())
def test_the_prior_is_its_formula(counts: np.ndarray, diagonal: bool) -> None:
    found = prior(counts, diagonal=diagonal)
    for row in range(SIZE):
        allowed = [column for column in range(SIZE) if diagonal or column != row]
        near_all = sum(0.5 ** abs(row - column) for column in allowed)
        weights = {
            column: 0.5 ** abs(row - column) / near_all
            + sum(
                0.5 ** abs(row - other) * counts[other, other + column - row]
                for other in range(SIZE)
                if 0 <= other + column - row < SIZE
            )
            for column in allowed
        }
        for column in range(SIZE):
            assert found[row, column] == pytest.approx(weights.get(column, 0) / sum(weights.values()))


def test_without_any_knowledge_counts_stay_near() -> None:
    row = prior(np.zeros((5, 5), np.int64), diagonal=False)[1]
    assert row == pytest.approx(np.array([1 / 2, 0, 1 / 2, 1 / 4, 1 / 8]) / (11 / 8))


def test_steps_are_borrowed_and_not_destinations() -> None:
    climbing = np.zeros((6, 6), np.int64)
    for row in range(4):
        climbing[row, row + 1] = 10
    assert np.argmax(prior(climbing, diagonal=False)[4]) == 5


def test_near_rows_say_more_than_far_ones() -> None:
    counts = np.zeros((7, 7), np.int64)
    counts[1, 2] = 10  # far below, up by one
    counts[5, 3] = 10  # nearby, down by two
    row = prior(counts, diagonal=False)[4]
    assert row[2] > row[5] > row[6]


@given(tables, st.floats(0, 50))
def test_smoothing_is_a_mean_of_what_was_seen_and_what_is_believed(counts: np.ndarray, strength: float) -> None:
    believed = prior(counts, diagonal=True)
    rows = smooth(counts, believed, strength)
    assert rows.sum(axis=1) == pytest.approx(np.ones(SIZE))
    for row, seen in enumerate(counts):
        share = strength / (strength + seen.sum()) if seen.any() else 1.0
        frequencies = seen / max(1, seen.sum())
        assert rows[row] == pytest.approx(share * believed[row] + (1 - share) * frequencies)
