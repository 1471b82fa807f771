"""The synthetic workloads of paper 000."""

import numpy as np
import pytest

from migration.errors import InvalidInput
from migration.keys.workloads import KeyWorkload


def test_the_same_seed_gives_the_same_stream_and_another_seed_another_one() -> None:
    one, same, other = (KeyWorkload.zipf(2_000, 4, seed=seed) for seed in (1, 1, 2))
    assert one.advance().loads() == same.advance().loads()
    assert one.loads() != other.loads()


def test_frequencies_are_zipf_whole_and_at_least_1() -> None:
    frequency = np.sort(KeyWorkload.zipf(10_000, skew=1.0).frequency)[::-1]
    assert frequency[0] / frequency[1] == pytest.approx(2, rel=1e-3)
    assert frequency[0] / frequency[9] == pytest.approx(10, rel=1e-3)
    assert frequency.min() == 1
    assert (frequency == np.rint(frequency)).all()
    assert frequency.sum() == pytest.approx(100_000, rel=0.02)


@pytest.mark.parametrize("fluctuation", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_one_node_changes_by_the_fluctuation(fluctuation: float, seed: int) -> None:
    before = KeyWorkload.zipf(20_000, 15, fluctuation=fluctuation, seed=seed)
    after = before.advance()
    old, new = (np.bincount(one.home, weights=one.frequency) for one in (before, after))
    change = np.abs(new - old) / np.minimum(new, old)
    assert change.max() >= fluctuation
    assert np.sort(after.frequency).tolist() == np.sort(before.frequency).tolist()


def test_the_node_that_changes_is_one_of_the_current_assignment() -> None:
    before = KeyWorkload.zipf(20_000, 15)
    current = np.random.default_rng(1).integers(0, 15, 20_000).astype(np.int32)
    after = before.advance(current)
    old, new = (np.bincount(current, weights=one.frequency) for one in (before, after))
    assert (np.abs(new - old) / np.minimum(new, old)).max() >= 1


def test_without_fluctuation_nothing_changes() -> None:
    before = KeyWorkload.zipf(1_000, 3, fluctuation=0)
    assert before.advance().loads() == before.loads()


def test_state_is_that_of_the_window() -> None:
    first = KeyWorkload.zipf(1_000, 3, window=3)
    second = first.advance()
    fourth = second.advance().advance()
    assert second.loads().size.tolist() == (second.frequency + 2 * first.frequency).tolist()
    assert fourth.loads().size.tolist() == np.sum(fourth.window, axis=0).tolist()
    assert len(fourth.window) == 3


def test_homes_spread_keys_evenly() -> None:
    counts = np.bincount(KeyWorkload.zipf(30_000, 15).home)
    assert len(counts) == 15
    assert counts.min() > 1_800
    assert counts.max() < 2_200


def test_a_change_that_no_swap_can_reach_is_as_large_as_can_be() -> None:
    before = KeyWorkload.zipf(10, 2, fluctuation=1_000, seed=4)
    after = before.advance()
    assert sorted(after.frequency) == sorted(before.frequency)


@pytest.mark.parametrize(
    "wrong", [{"keys": 0}, {"nodes": 0}, {"window": 0}, {"skew": -1}, {"skew": np.nan}, {"fluctuation": -0.1}]
)
def test_wrong_parameters_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        KeyWorkload.zipf(**{"keys": 10, "nodes": 2, **wrong})  # type: ignore[arg-type]
