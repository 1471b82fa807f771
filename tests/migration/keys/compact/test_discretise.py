"""HLHE discretisation: the paper's figure, the definition, and how much sums deviate."""

import numpy as np
import pytest

from migration.errors import InvalidInput
from migration.keys.compact import discretise
from migration.keys.compact.discretise import discretise_by_definition, list_representatives
from tests.migration.keys.compact.instances import random_amounts

FIGURE_6 = np.array([8.0, 6, 3, 2, 2, 1, 1, 1, 1, 1])


def test_figure_6b_ends_with_no_deviation() -> None:
    answer = discretise(FIGURE_6, r=2)
    assert answer.tolist() == [8, 4, 4, 2, 2, 2, 1, 1, 1, 1]
    assert (FIGURE_6 - answer).sum() == 0


def test_representative_values_are_multiples_of_r_and_powers_of_two_below() -> None:
    assert list_representatives(8, r=2) == [8, 4, 2, 1]
    assert list_representatives(39, r=3) == [32, 24, 16, 8, 4, 2, 1]
    assert list_representatives(3, r=3) == [4, 2, 1]
    assert list_representatives(3, r=0) == [3, 2, 1]


@pytest.mark.parametrize("seed", range(200))
def test_the_compiled_loop_equals_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, r = random_amounts(rng, int(rng.integers(1, 60))), int(rng.integers(0, 9))
    assert discretise(values, r, unit=1.0).tolist() == discretise_by_definition(values.tolist(), r)


def test_whole_numbers_stay_as_they_are_with_r_0() -> None:
    values = np.array([5.0, 1, 0, 3, 3, 700])
    assert discretise(values, r=0).tolist() == values.tolist()


def test_deviations_cancel_out_within_every_group() -> None:
    rng = np.random.default_rng(1)
    values, groups = np.floor(rng.pareto(1.0, 20_000)) + 1, rng.integers(0, 5, 20_000).astype(np.int32)
    answer = discretise(values, r=6, groups=groups)
    for group in range(5):
        mine = groups == group
        assert abs(answer[mine].sum() - values[mine].sum()) <= 2
    assert len(np.unique(answer)) < len(np.unique(values))


def test_values_below_the_unit_become_nothing_or_one_unit() -> None:
    answer = discretise(np.full(10, 0.25), r=3, unit=1.0)
    assert set(answer.tolist()) == {0.0, 1.0}
    assert abs(answer.sum() - 2.5) <= 0.5


def test_zeros_stay_zeros() -> None:
    assert discretise(np.array([0.0, 0.0]), r=3).tolist() == [0, 0]
    assert discretise(np.array([100.0, 0.0, 60.0]), r=5)[1] == 0


@pytest.mark.parametrize("r", [-1, 53, 1.5, True, "3"])
def test_a_wrong_degree_is_refused(r: int) -> None:
    with pytest.raises(InvalidInput, match="Give a whole number from 0 to 52"):
        discretise(FIGURE_6, r)


@pytest.mark.parametrize("unit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_wrong_unit_is_refused(unit: float) -> None:
    with pytest.raises(InvalidInput, match="Give a positive number"):
        discretise(FIGURE_6, 2, unit)
