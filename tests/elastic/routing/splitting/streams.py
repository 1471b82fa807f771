"""Streams and targets that the tests of splitting share."""

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from elastic.routing.splitting import Targets

Hashes = npt.NDArray[np.uint64]

HASHES = st.lists(st.one_of(st.integers(0, 6), st.integers(0, 2**64 - 1)), max_size=120).map(
    lambda values: np.array(values, np.uint64)
)


@st.composite
def targets(draw: st.DrawFn) -> Targets:
    """Some workers, each with at least one target, in any order."""
    workers = draw(st.integers(1, 6))
    more = draw(st.lists(st.integers(0, workers - 1), max_size=8))
    owners = draw(st.permutations([*range(workers), *more]))
    return Targets(np.array(owners), draw(st.integers(0, 2**64 - 1)))


def zipf(rows: int, keys: int, exponent: float = 1.0, seed: int = 0) -> Hashes:
    """Hashes of keys with Zipf frequencies."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1.0, keys + 1) ** -exponent
    hashes: Hashes = rng.integers(0, 2**64, keys, np.uint64)
    return hashes[rng.choice(keys, rows, p=shares / shares.sum())]


def imbalance(loads: npt.NDArray[np.int64]) -> float:
    """The largest load over the mean, in shares of all rows."""
    return float((loads.max() - loads.mean()) / loads.sum())
