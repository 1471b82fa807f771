"""The synthetic workloads of paper 000: K keys, Zipf frequencies (z) that fluctuate (f), and state of a window (w)."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidInput
from migration.keys.loads import Floats, Hashes, KeyLoads, Nodes
from migration.model.mixing import mix_numbers

DEFAULT_KEYS, DEFAULT_SKEW, DEFAULT_FLUCTUATION, DEFAULT_WINDOW = 1_000_000, 0.85, 1.0, 5  # those of the paper
_RECORDS_PER_KEY = 10
_PAIRS = 64  # tries to reach a fluctuation; each pairs all keys of the driven node


@dataclass(frozen=True, eq=False)
class KeyWorkload:
    """An interval of a synthetic stream, with the frequencies of the last w intervals, newest first.

    The work of a key is its frequency, its state size the sum of its frequencies in the window. Same arguments and
    seed, same workload; `advance` returns the next interval and changes nothing.
    """

    nodes: int
    hashes: Hashes
    window: tuple[Floats, ...]
    fluctuation: float
    seed: tuple[int, ...] = field(default=(0,))
    interval: int = 0

    @classmethod
    def zipf(
        cls,
        keys: int = DEFAULT_KEYS,
        nodes: int = 15,
        skew: float = DEFAULT_SKEW,
        fluctuation: float = DEFAULT_FLUCTUATION,
        window: int = DEFAULT_WINDOW,
        seed: int = 0,
    ) -> Self:
        """The first interval: 10 records a key on average, at least 1; the interval before had the same frequencies."""
        if keys < 1 or nodes < 1 or window < 1:
            raise InvalidInput(f"keys, nodes and window are {keys}, {nodes} and {window}. Give numbers >= 1.")
        if not (0 <= skew < np.inf and 0 <= fluctuation < np.inf):
            raise InvalidInput(f"skew and fluctuation are {skew} and {fluctuation}. Give finite numbers >= 0.")
        frequency = np.arange(1, keys + 1, dtype=np.float64) ** -skew
        frequency = np.maximum(np.rint(frequency * (_RECORDS_PER_KEY * keys / frequency.sum())), 1.0)
        frequency = np.random.default_rng([seed, keys]).permutation(frequency)
        hashes = np.sort(mix_numbers(np.arange(keys, dtype=np.uint64) + np.uint64(seed * keys)).view(np.int64))
        return cls(nodes, hashes, (frequency,) * window, fluctuation, (seed, keys, nodes))

    @cached_property
    def home(self) -> Nodes:
        """The node that each hash leads to: the hash modulo the number of nodes."""
        return (self.hashes.view(np.uint64) % np.uint64(self.nodes)).astype(np.int32)

    @property
    def frequency(self) -> Floats:
        return self.window[0]

    def loads(self, current: Nodes | None = None) -> KeyLoads:
        """The loads of this interval with keys on their `current` nodes; at home if None."""
        size = self.window[0] if len(self.window) == 1 else np.sum(self.window, axis=0)
        return KeyLoads(self.hashes, self.home, current, self.frequency, size)

    def advance(self, current: Nodes | None = None) -> Self:
        """The next interval: keys on different nodes swap frequencies until the load of one node has grown by f.

        With L the load of a node in this interval and L' in the next, |L' - L| / min(L, L') >= f holds for a node that
        is drawn at random: its load grows to (1 + f) * L. Its keys are paired with random keys of other nodes, and
        pairs in which the other key is more frequent swap their frequencies. The paper asks for |L' - L| / L' >= f,
        which no growing load can satisfy for f >= 1, and swaps without a direction, which cancel out. Where all swaps
        together do not suffice, as for large f on few nodes, the load grows as far as it can.
        """
        rng = np.random.default_rng([*self.seed, self.interval])
        frequency = np.array(self.frequency)
        frequency = _fluctuate(frequency, self.home if current is None else current, self.nodes, self.fluctuation, rng)
        window = (frequency, *self.window[:-1])
        return replace(self, window=window, interval=self.interval + 1)


def _fluctuate(frequency: Floats, current: Nodes, nodes: int, change: float, rng: np.random.Generator) -> Floats:
    driven = int(rng.integers(nodes))
    mine, others = np.flatnonzero(current == driven), np.flatnonzero(current != driven)
    if not change or not len(mine) or not len(others):
        return frequency
    needed = change * float(frequency[mine].sum())
    for _ in range(_PAIRS):
        pairs = min(len(mine), len(others))
        one, other = rng.permutation(mine)[:pairs], _sample(rng, others, pairs)
        gain = frequency[other] - frequency[one]
        useful = np.flatnonzero(gain > 0)
        reached = np.cumsum(gain[useful])
        swapped = useful[: int(np.searchsorted(reached, needed)) + 1]
        one, other = one[swapped], other[swapped]
        frequency[one], frequency[other] = frequency[other], frequency[one]
        needed -= float(gain[swapped].sum())
        if needed <= 0:
            break
    return frequency


def _sample(rng: np.random.Generator, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Distinct rows, drawn at random; O(count) where there are many more rows."""
    return rng.choice(rows, count, replace=False, shuffle=True)
