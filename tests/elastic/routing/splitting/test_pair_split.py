"""Two choices for whole batches: the best division, by NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.routing.splitting import Targets, choose_targets, create_sketch, head_share, reference, split_pairs
from elastic.routing.splitting.pair_split import fill_up, is_among_few, level_pairs, list_rounds, split_with_heads
from tests.elastic.routing.splitting.streams import HASHES, Hashes, targets, zipf

LOADS = st.lists(st.integers(0, 30), min_size=1, max_size=7)


@given(HASHES, targets(), st.integers(1, 50))
def test_every_row_goes_to_one_of_its_choices_and_is_counted(hashes: Hashes, some: Targets, chunk: int) -> None:
    loads = np.zeros(some.workers, np.int64)
    chosen = split_pairs(hashes, some, loads, chunk)
    first, second = (some.arrays.targets[positions] for positions in some.pairs(hashes))
    assert ((chosen == first) | (chosen == second)).all()
    assert np.bincount(some.owners[chosen], minlength=some.workers).tolist() == loads.tolist()


@given(LOADS, st.data())
def test_levelling_equals_the_plain_loop_over_pairs(loads: list[int], data: st.DataObject) -> None:
    workers = len(loads)
    found = np.zeros((workers, workers), np.int64)
    for low, high in reference.list_pairs(workers):
        found[low, high] = data.draw(st.integers(0, 20))
    levelled, plain = np.array(loads, np.int64), [*loads]
    divided = level_pairs(found, levelled)
    expected = reference.level_pairs({(int(a), int(b)): int(found[a, b]) for a, b in np.argwhere(found)}, plain)
    assert levelled.tolist() == plain
    assert {pair: rows for pair, rows in expected.items() if rows} == {
        (int(a), int(b)): int(divided[a, b]) for a, b in np.argwhere(divided)
    }
    assert (divided <= found).all()


@pytest.mark.parametrize("workers", range(1, 10))
def test_in_a_tournament_every_pair_meets_once_and_no_worker_meets_two_at_a_time(workers: int) -> None:
    lows, highs = list_rounds(workers)
    pairs = [*zip(lows.ravel().tolist(), highs.ravel().tolist(), strict=True)]
    assert sorted(pairs) == sorted((low, high) for high in range(workers) for low in range(high))
    assert pairs == [*reference.list_pairs(workers)]
    assert all(len({*low, *high}) == 2 * len(low) for low, high in zip(lows.tolist(), highs.tolist(), strict=True))


@pytest.mark.parametrize("workers", [2, 5, 10, 40])
def test_batches_are_divided_at_least_as_evenly_as_rows_one_by_one(workers: int) -> None:
    hashes, some = zipf(200_000, 2_000, 0.9), Targets.one_per_worker(workers)
    loads, others = np.zeros(workers, np.int64), np.zeros(workers, np.int64)
    split_pairs(hashes, some, loads, 50_000)
    choose_targets(hashes, some, others)
    assert loads.max() <= others.max() + 10


@given(LOADS, st.integers(0, 60))
def test_filling_up_equals_one_row_after_another(loads: list[int], rows: int) -> None:
    amounts = fill_up(np.array(loads, np.int64), rows)
    plain = [*loads]
    for _ in range(rows):
        plain[reference.find_least_loaded_worker(plain)] += 1
    assert (np.array(loads) + amounts).tolist() == plain


@given(HASHES, st.lists(st.integers(0, 6), max_size=3))
def test_hashes_are_among_a_few(hashes: Hashes, few: list[int]) -> None:
    found = is_among_few(hashes, np.array(few, np.uint64))
    assert found.tolist() == [key_hash in few for key_hash in hashes.tolist()]


def test_the_head_is_told_by_all_batches_so_far() -> None:
    some, sketch = Targets.one_per_worker(4), create_sketch(4)
    heavy, light = np.uint64(77), zipf(1_000, 1_000, 0.1)
    loads = np.zeros(4, np.int64)
    chosen = split_with_heads(np.append(light, np.full(100, heavy)), some, loads, sketch, head_share(4), chunk=100)
    assert {*chosen[-100:].tolist()} == {0, 1, 2, 3}
    assert loads.sum() == 1_100
