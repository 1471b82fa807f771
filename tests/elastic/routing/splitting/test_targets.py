"""The choices of keys: on different workers, even, and the same in Python and in NumPy."""

import numpy as np
import pytest
from hypothesis import given

from elastic.errors import InvalidJob
from elastic.routing.splitting import Targets, reference
from elastic.routing.splitting.targets import mix
from tests.elastic.routing.splitting.streams import HASHES, Hashes, targets


@given(HASHES, targets())
def test_both_choices_equal_the_reference_and_are_on_different_workers(hashes: Hashes, some: Targets) -> None:
    first, second = some.pairs(hashes)
    assert [*zip(first.tolist(), second.tolist(), strict=True)] == [
        reference.find_pair(key_hash, some) for key_hash in hashes.tolist()
    ]
    workers = some.arrays.workers
    assert some.workers == 1 or (workers[first] != workers[second]).all()
    assert (some.first_choices(hashes) == some.arrays.targets[first]).all()


@given(HASHES, targets())
def test_the_target_of_a_key_on_a_worker_is_one_of_that_worker(hashes: Hashes, some: Targets) -> None:
    for worker in range(some.workers):
        chosen = some.of_worker(hashes, np.full(len(hashes), worker))
        assert (some.owners[chosen] == worker).all()
        positions = [reference.find_position(key_hash, worker, some) for key_hash in hashes.tolist()]
        assert chosen.tolist() == some.arrays.targets[positions].tolist()


def test_signed_and_unsigned_hashes_have_the_same_choices() -> None:
    hashes = np.array([2**63 + 5, 7], np.uint64)
    some = Targets.one_per_worker(9, seed=3)
    assert (some.pairs(hashes)[1] == some.pairs(hashes.view(np.int64))[1]).all()


@pytest.mark.parametrize("owners", [np.arange(6), np.arange(24) % 6])
def test_every_ordered_pair_of_workers_is_equally_likely(owners: np.ndarray) -> None:
    some = Targets(owners)
    hashes = np.random.default_rng(1).integers(0, 2**64, 90_000, np.uint64)
    first, second = (some.arrays.workers[positions] for positions in some.pairs(hashes))
    found = np.bincount(first * 6 + second, minlength=36).reshape(6, 6)
    assert (found.diagonal() == 0).all()
    assert np.abs(found[~np.eye(6, dtype=bool)] - 3_000).max() < 300


def test_two_seeds_give_independent_choices() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 10_000, np.uint64)
    one, other = (Targets.one_per_worker(10, seed).first_choices(hashes) for seed in (0, 1))
    assert (one == other).mean() == pytest.approx(0.1, abs=0.02)


@given(HASHES)
def test_hashes_are_mixed_as_in_the_reference(hashes: Hashes) -> None:
    assert mix(hashes, 2**64 - 1).tolist() == [reference.mix(key_hash, 2**64 - 1) for key_hash in hashes.tolist()]


@pytest.mark.parametrize(
    ("owners", "seed", "message"),
    [
        ([], 0, "cannot route to 0 targets. Name the worker"),
        ([0, 2], 0, r"workers \[0, 2\] have targets. Number workers from 0"),
        ([-1, 0], 0, "leave out those without"),
        ([0, 1], -1, "seed -1 does not fit"),
    ],
)
def test_targets_without_workers_or_with_gaps_are_refused(owners: list[int], seed: int, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        Targets(np.array(owners, np.int64), seed)


def test_targets_do_not_change() -> None:
    owners = np.array([0, 1])
    some = Targets(owners)
    owners[0] = 1
    assert some.owners.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        some.owners[0] = 1
