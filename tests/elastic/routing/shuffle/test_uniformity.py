"""Whether cost keys and nodes differ in cost, or only their measurements do."""

from collections.abc import Sequence

import numpy as np
import pytest

from elastic.routing.shuffle import ExecutionSketch, SketchShape, measure_slowness, pool
from elastic.routing.shuffle.uniformity import has_uniform_costs

SHAPE = SketchShape(4, 512)


def measure(
    costs: list[float],
    noise: float = 0.0,
    rows: int = 40,
    nodes: int = 5,
    speeds: Sequence[float] = (),
    seed: int = 0,
) -> list[ExecutionSketch]:
    """Return the sketches of nodes that measure so many rows of each key; `noise` is a deviation, in mean costs."""
    chance = np.random.default_rng(seed)
    keys = chance.integers(0, 1 << 62, len(costs))
    sketches = []
    for node in range(nodes):
        sketch = ExecutionSketch(SHAPE)
        slowness = speeds[node] if speeds else 1.0
        seconds = slowness * np.repeat(costs, rows) + noise * np.mean(costs) * chance.normal(size=len(costs) * rows)
        sketch.add(np.repeat(keys, rows), seconds)
        sketches.append(sketch)
    return sketches


def is_uniform(sketches: list[ExecutionSketch]) -> bool:
    return has_uniform_costs(sketches, measure_slowness(sketches, pool(sketches)))


@pytest.mark.parametrize(("keys", "rows", "nodes"), [(2, 1, 2), (2, 5, 8), (5, 3, 2), (30, 1, 5), (200, 10, 3)])
@pytest.mark.parametrize("noise", [0.1, 2.0])
def test_noise_alone_is_no_difference(noise: float, keys: int, rows: int, nodes: int) -> None:
    uniform = [is_uniform(measure([0.01] * keys, noise, rows, nodes, seed=seed)) for seed in range(100)]
    assert sum(uniform) >= 97  # one of 700 fails by chance


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("nodes", [2, 5])
def test_one_slow_key_of_a_hundred_is_a_difference(noise: float, nodes: int) -> None:
    assert not is_uniform(measure([0.006] * 99 + [0.120], noise, nodes=nodes))
    assert not is_uniform(measure(([0.006] * 9 + [0.120]) * 10, noise, nodes=nodes))


def test_differences_that_scheduling_cannot_use_do_not_count() -> None:
    assert is_uniform(measure([0.0100, 0.0115] * 50))  # a deviation of 7 %
    assert not is_uniform(measure([0.0100, 0.0125] * 50))  # of 11 %


def test_a_slow_node_is_a_difference_and_hides_none() -> None:
    speeds = (1.0, 1.0, 1.0, 1.0, 1.5)
    assert not is_uniform(measure([0.01] * 100, rows=100, speeds=speeds))
    assert is_uniform(measure([0.01] * 100, rows=100, speeds=(1.0, 1.0, 1.0, 1.0, 1.02)))
    few = measure([0.006] * 99 + [0.120], rows=1, speeds=speeds)
    assert not is_uniform(few)


def test_a_slow_node_is_found_without_cost_keys() -> None:
    assert is_uniform(measure([0.01], noise=0.5, rows=5_000))
    assert not is_uniform(measure([0.01], noise=0.5, rows=5_000, speeds=(1.0, 1.0, 1.0, 1.0, 1.3)))


def test_a_fast_node_is_found_too() -> None:
    assert not is_uniform(measure([0.01], noise=0.5, rows=5_000, nodes=9, speeds=(*[1.0] * 8, 0.6)))


def test_a_node_without_company_compares_its_keys_by_size_alone() -> None:
    assert is_uniform(measure([0.01] * 10, nodes=1))
    assert not is_uniform(measure([0.01, 0.02] * 10, nodes=1))


def test_a_key_that_shares_a_cell_with_a_frequent_one_is_found_in_another_row() -> None:
    columns = SHAPE.columns_of(np.arange(20_000))
    frequent = 0
    shares = np.flatnonzero((columns[0] == columns[0, frequent]) & (columns[1:] != columns[1:, :1]).all(axis=0))
    sketches = []
    for _ in range(3):
        sketch = ExecutionSketch(SHAPE)
        sketch.add(np.full(20_000, frequent), np.full(20_000, 0.01))
        sketch.add(np.full(20, shares[0]), np.full(20, 0.5))
        sketches.append(sketch)
    assert np.ptp(pool(sketches).mean_seconds()[0][pool(sketches).frequencies[0] > 0]) == 0
    assert not is_uniform(sketches)


def test_rows_that_take_nothing_do_not_differ() -> None:
    assert is_uniform(measure([0.0] * 10))
