"""Random instances for tests of key planning: ties, keys without work or state, heavy keys, full tables.

Some of them have pinned work.
"""

import numpy as np

from migration.keys import KeyLoads
from migration.keys.problem import KeyProblem

THETAS = (0.0, 0.0, 0.01, 0.08, 0.3, 1.0)


def random_loads(rng: np.random.Generator, most_keys: int = 40, most_nodes: int = 6) -> tuple[KeyLoads, int]:
    """Small loads of many kinds, and their number of nodes."""
    keys, nodes = int(rng.integers(1, most_keys + 1)), int(rng.integers(1, most_nodes + 1))
    home = rng.integers(0, nodes, keys)
    away = rng.random(keys) < rng.choice([0, 0.2, 0.6, 1])  # all at home, some away, a full table
    current = np.where(away, rng.integers(0, nodes, keys), home)
    return KeyLoads(
        _random_hashes(rng, keys), home, current, _random_amounts(rng, keys), _random_amounts(rng, keys)
    ), nodes


def random_problem(rng: np.random.Generator, most_keys: int = 40, most_nodes: int = 6) -> KeyProblem:
    loads, nodes = random_loads(rng, most_keys, most_nodes)
    theta, most_entries = float(rng.choice(THETAS)), int(rng.choice([1, 2, 5, 20, 3_000]))
    return KeyProblem.of(loads, nodes, theta, most_entries, random_pinned(rng, loads, nodes))


def random_pinned(rng: np.random.Generator, loads: KeyLoads, nodes: int) -> list[float] | None:
    """Pinned work of every node: mostly none, else even, uneven, on some nodes, or too much on one for most caps."""
    mean = loads.total_work / nodes
    match rng.integers(8):
        case 0:
            pinned = np.full(nodes, 2.0)
        case 1:
            pinned = mean * rng.uniform(0, 1, nodes)
        case 2:
            pinned = rng.integers(0, 4, nodes) / 10  # ties and zeros; sums of tenths are not exact
        case 3:
            pinned = np.where(np.arange(nodes) == rng.integers(nodes), mean * rng.uniform(0, 4), 0.0)
        case _:
            return None
    amounts: list[float] = pinned.tolist()
    return amounts


def zipf_loads(keys: int, nodes: int, seed: int = 1, skew: float = 0.85, away: float = 0.0) -> KeyLoads:
    """Zipf work and as much state, as in the paper, with a share `away` of the keys on random nodes."""
    rng = np.random.default_rng(seed)
    work = rng.permutation(1e6 / np.arange(1, keys + 1) ** skew)
    home = rng.integers(0, nodes, keys)
    current = np.where(rng.random(keys) < away, rng.integers(0, nodes, keys), home)
    return KeyLoads(_random_hashes(rng, keys), home, current, work, work * rng.uniform(0.5, 2, keys))


def _random_hashes(rng: np.random.Generator, keys: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    hashes = np.unique(rng.integers(-(2**63), 2**63 - 1, 2 * keys))
    return rng.permutation(hashes)[:keys]


def _random_amounts(rng: np.random.Generator, keys: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    amounts: np.ndarray[tuple[int], np.dtype[np.float64]]
    match rng.integers(6):
        case 0:
            amounts = rng.integers(0, 4, keys).astype(float)  # ties and zeros
        case 1:
            amounts = rng.lognormal(0, 1, keys)
        case 2:
            amounts = np.ones(keys)
        case 3:
            amounts = rng.permutation(100 / np.arange(1, keys + 1))
        case 4:
            amounts = rng.integers(1, 10, keys) / 10  # sums of tenths are not exact
            amounts[rng.integers(keys)] = 50.0  # one key heavier than any cap
        case _:
            amounts = np.where(rng.random(keys) < 0.3, 0.0, rng.integers(1, 100, keys))
    return amounts
