"""Random records for tests: whole numbers, so that sums are exact in every order."""

import numpy as np

from migration.keys import KeyLoads
from migration.keys.compact import KeyRecords, group_keys


def random_loads(rng: np.random.Generator, most_keys: int = 40, most_nodes: int = 5) -> tuple[KeyLoads, int]:
    """Loads with many equal keys, in the order of their records, and the number of nodes."""
    keys, nodes = int(rng.integers(1, most_keys + 1)), int(rng.integers(1, most_nodes + 1))
    home = rng.integers(0, nodes, keys)
    current = np.where(rng.random(keys) < rng.choice([0, 0.3, 1]), rng.integers(0, nodes, keys), home)
    work = rng.integers(0, rng.choice([2, 4, 30]), keys)
    size = rng.integers(0, rng.choice([2, 4, 30]), keys)
    order = np.lexsort((size, work, home, current))
    columns = [column[order] for column in (home, current, work, size)]
    return KeyLoads(np.arange(keys), columns[0], columns[1], columns[2].astype(float), columns[3].astype(float)), nodes


def random_records(rng: np.random.Generator, most_keys: int = 40) -> KeyRecords:
    return group_keys(random_loads(rng, most_keys)[0], r=None).records


def random_amounts(rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Descending amounts of at least 1: skewed whole numbers or fractions."""
    amounts = rng.pareto(1.0, count) + 1
    return np.sort(np.floor(amounts) if rng.integers(2) else amounts)[::-1].copy()
