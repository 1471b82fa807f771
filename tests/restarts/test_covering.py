"""The generator of the matrix: every pair of values is there, in few combinations, the same every time."""

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from tests.restarts.covering import cover_pairs
from tests.restarts.matrix import CELLS, FACTORS


@given(st.lists(st.integers(1, 4), min_size=2, max_size=7))
def test_every_pair_of_values_occurs(sizes: list[int]) -> None:
    factors = {f"factor {number}": range(size) for number, size in enumerate(sizes)}
    found = cover_pairs(factors)
    for one, other in combinations(factors, 2):
        assert {(row[one], row[other]) for row in found} == set(product(factors[one], factors[other]))
    assert found == cover_pairs(factors)


def test_the_matrix_is_small() -> None:
    sizes = sorted(len(values) for values in FACTORS.values())
    assert sizes[-1] * sizes[-2] <= len(CELLS) <= 2 * sizes[-1] * sizes[-2]
