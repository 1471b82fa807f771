"""Execution-time sketches and the estimates that senders make of them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing.shuffle import CostEstimates, ExecutionSketch, SketchShape, measure_slowness, pool
from elastic.routing.shuffle.sketch import Floats, Hashes, relative_change

ROWS = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 64)), min_size=1, max_size=60)
SHAPES = st.builds(SketchShape, st.integers(1, 4), st.integers(1, 30), st.integers(0, 99))


def columns(rows: list[tuple[int, int]]) -> tuple[Hashes, Floats]:
    return np.array([key for key, _ in rows], np.int64), np.array([cost for _, cost in rows], np.float64)


def filled(shape: SketchShape, rows: list[tuple[int, int]]) -> ExecutionSketch:
    sketch = ExecutionSketch(shape)
    sketch.add(*columns(rows))
    return sketch


def same(one: ExecutionSketch, other: ExecutionSketch) -> bool:
    return np.array_equal(one.frequencies, other.frequencies) and np.array_equal(one.seconds, other.seconds)


@given(SHAPES, ROWS)
def test_compiled_and_plain_loops_build_the_same_sketch(shape: SketchShape, rows: list[tuple[int, int]]) -> None:
    plain = ExecutionSketch(shape)
    hashes, seconds = columns(rows)
    plain.add_with_numpy(hashes, np.ones(len(rows), np.int64), seconds)
    assert same(filled(shape, rows), plain)


@given(SHAPES, ROWS, ROWS)
def test_compiled_and_plain_loops_estimate_the_same(
    shape: SketchShape, rows: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    estimates = CostEstimates.from_sketch(filled(shape, rows))
    hashes, _ = columns(rows + others)
    assert estimates.estimate(hashes).tolist() == estimates.estimate_with_numpy(hashes).tolist()


@given(SHAPES, ROWS)
def test_every_cell_sums_the_rows_that_its_hash_function_leads_there(
    shape: SketchShape, rows: list[tuple[int, int]]
) -> None:
    sketch = filled(shape, rows)
    for row, (a, b) in enumerate(shape.factors.tolist()):
        counts: Counter[int] = Counter()
        seconds: Counter[int] = Counter()
        for key, cost in rows:
            column = (((a * key + b) % 2**64) >> 32) * shape.columns >> 32
            counts[column] += 1
            seconds[column] += cost
        assert {j: n for j, n in enumerate(sketch.frequencies[row].tolist()) if n} == counts
        assert {j: s for j, s in enumerate(sketch.seconds[row].tolist()) if s} == seconds


@given(SHAPES, ROWS, ROWS)
def test_merged_sketches_equal_one_sketch_of_all_rows(
    shape: SketchShape, rows: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    parts = [filled(shape, rows), filled(shape, others)]
    before = parts[0].copy()
    assert same(pool(parts), filled(shape, rows + others))
    assert same(parts[0], before)


@given(ROWS)
def test_groups_of_rows_count_like_their_rows(rows: list[tuple[int, int]]) -> None:
    shape = SketchShape()
    groups = ExecutionSketch(shape)
    hashes, seconds = columns(rows)
    groups.add_groups(hashes, np.full(len(rows), 3, np.int64), 3 * seconds)
    assert same(groups, filled(shape, 3 * rows))
    assert groups.rows == 3 * len(rows)


def test_matrices_can_be_sent_and_put_together_again() -> None:
    sketch = filled(SketchShape(2, 5), [(1, 2), (9, 4)])
    assert same(ExecutionSketch(sketch.shape, sketch.frequencies.copy(), sketch.seconds.copy()), sketch)


def test_rows_that_are_not_contiguous_are_added_and_estimated_too() -> None:
    hashes, seconds = np.arange(40), np.arange(40.0)
    strided = ExecutionSketch(SketchShape())
    strided.add(hashes[::2], seconds[::2])
    dense = ExecutionSketch(SketchShape())
    dense.add(hashes[::2].copy(), seconds[::2].copy())
    assert same(strided, dense)
    estimates = CostEstimates.from_sketch(dense)
    assert estimates.estimate(hashes[::2]).tolist() == estimates.estimate(hashes[::2].copy()).tolist()


def test_an_estimate_is_the_mean_of_the_cell_with_the_fewest_rows_and_the_first_of_those() -> None:
    shape = SketchShape(3, 8, seed=1)
    sketch = ExecutionSketch(shape)
    key = np.array([77], np.int64)
    [[first], [second], [third]] = shape.columns_of(key).tolist()
    for row, column, count, seconds in (0, first, 5, 50.0), (1, second, 2, 8.0), (2, third, 2, 6.0):
        sketch.frequencies[row, column], sketch.seconds[row, column] = count, seconds
    estimates = CostEstimates.from_sketch(sketch)
    assert estimates.estimate(key).tolist() == estimates.estimate_with_numpy(key).tolist() == [4.0]


def test_an_unseen_key_takes_the_mean_of_all_rows_unless_told_otherwise() -> None:
    shape = SketchShape(1, 1 << 20)
    sketch = filled(shape, [(1, 2), (1, 4), (2, 9)])
    new = np.array([12345], np.int64)
    assert CostEstimates.from_sketch(sketch).estimate(new).tolist() == [5.0]
    assert CostEstimates.from_sketch(sketch, unseen=0.0).estimate(new).tolist() == [0.0]
    assert CostEstimates.from_sketch(ExecutionSketch(shape)).estimate(new).tolist() == [0.0]


def test_estimates_do_not_change_with_the_sketch_that_they_came_from() -> None:
    sketch = filled(SketchShape(), [(1, 2)])
    estimates = CostEstimates.from_sketch(sketch)
    sketch.clear()
    assert sketch.rows == 0
    assert estimates.estimate(np.array([1])).tolist() == [2.0]


def test_slowness_compares_a_node_with_all_nodes_on_the_same_keys() -> None:
    rng, shape = np.random.default_rng(5), SketchShape.of_precision(0.01)
    costs = rng.uniform(1, 64, 100)
    sketches = []
    for slow in (1.2, 1.0, 0.8):
        sketches.append(ExecutionSketch(shape))
        keys = rng.integers(0, 100, 30_000)
        sketches[-1].add(keys, costs[keys] * slow)
    pooled = pool(sketches)
    assert measure_slowness(sketches, pooled, prior_rows=0) == pytest.approx([1.2, 1.0, 0.8], abs=0.005)
    cautious = measure_slowness(sketches, pooled, prior_rows=10**9)
    assert cautious == pytest.approx([1, 1, 1], abs=1e-4)
    empty = ExecutionSketch(shape)
    assert measure_slowness([empty], empty).tolist() == [1.0]


def test_the_change_of_a_sketch_weighs_cells_alike_or_by_their_rows() -> None:
    shape = SketchShape(1, 2)
    sketch = ExecutionSketch(shape, np.array([[9, 1]]), np.array([[9.0, 3.0]]))
    before = np.array([[1.0, 1.0]])
    assert relative_change(before, sketch, by_frequency=False) == 2 / 2
    assert relative_change(before, sketch, by_frequency=True) == 2 / 10
    assert relative_change(np.zeros((1, 2)), sketch, by_frequency=False) == float("inf")


@pytest.mark.parametrize(("epsilon", "delta", "size"), [(0.05, 0.1, (4, 55)), (0.7, 0.25, (2, 4)), (9.0, 0.9, (1, 1))])
def test_precision_decides_the_size(epsilon: float, delta: float, size: tuple[int, int]) -> None:
    shape = SketchShape.of_precision(epsilon, delta)
    assert (shape.rows, shape.columns) == size


def test_hash_functions_spread_keys_and_differ_by_row_and_seed() -> None:
    shape = SketchShape(4, 16)
    found = shape.columns_of(np.arange(16_000))
    assert all(np.bincount(row, minlength=16).min() > 500 for row in found)
    assert len({tuple(row) for row in found.tolist()}) == 4
    assert all((SketchShape(8, 16, seed).factors[:, 0] % 2 == 1).all() for seed in range(4))
    assert not np.array_equal(found, SketchShape(4, 16, seed=1).columns_of(np.arange(16_000)))


def test_sketches_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidJob, match="same shape"):
        ExecutionSketch(SketchShape(2, 3), np.zeros((3, 2), np.int64))
    with pytest.raises(InvalidJob, match="same shape"):
        ExecutionSketch(SketchShape(2, 3), np.zeros((2, 3)))  # type: ignore[arg-type]
    with pytest.raises(InvalidJob, match="one shape"):
        ExecutionSketch(SketchShape()).merge(ExecutionSketch(SketchShape(seed=1)))
    with pytest.raises(InvalidJob, match="at least one node"):
        pool([])


@pytest.mark.parametrize("wrong", [{"rows": 0}, {"columns": 0}, {"columns": 2**20 + 1}, {"seed": -1}])
def test_impossible_shapes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidJob, match="at least one row"):
        SketchShape(**wrong)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (0.1, 0), (0.1, 1)])
def test_impossible_precision_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidJob, match="between 0 and 1"):
        SketchShape.of_precision(epsilon, delta)
