"""Targets of rows, and which of them a key may use."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.xxh64 import PRIME_1, PRIME_2, PRIME_3

Hashes = npt.NDArray[np.int64] | npt.NDArray[np.uint64]  # 64-bit hashes of keys, one per row
Numbers = npt.NDArray[np.int64]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_CHUNK = 1 << 14  # rows at a time, so that what NumPy keeps between two operations stays in the processor's cache
MOST_TARGETS = 1 << 31  # a choice is made from 32 bits of a hash


class TargetArrays(NamedTuple):
    """The arrays of `Targets` that loops need. Positions are targets in the order of their workers.

    `targets[p]` is the target at position p, `workers[p]` its worker. The targets of worker w are at positions
    `starts[w]` to `starts[w + 1] - 1`.
    """

    targets: Numbers
    workers: Numbers
    starts: Numbers


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets 0 to m - 1, each on one of W workers; `owners[t]` is the worker of target t.

    In a job the targets are tasks and the workers are nodes; in a simulation every worker is its own target. Load is
    counted per worker. Different seeds give independent choices.

    Invariant: workers are 0 to W - 1, and each has a target.
    """

    owners: Numbers
    seed: int = 0
    arrays: TargetArrays = field(init=False, repr=False)

    def __post_init__(self) -> None:
        owners = np.array(self.owners, np.int64)
        if owners.ndim != 1 or not 0 < len(owners) <= MOST_TARGETS:
            raise InvalidJob(f"cannot route to {owners.size} targets. Name the worker of at least one target.")
        if not 0 <= self.seed < 1 << 64:
            raise InvalidJob(f"the seed {self.seed} does not fit in 64 bits. Use one from 0 to 2**64 - 1.")
        numbers, counts = np.unique(owners, return_counts=True)
        if numbers[0] != 0 or numbers[-1] != len(numbers) - 1:
            raise InvalidJob(
                f"workers {numbers.tolist()} have targets. Number workers from 0 to W - 1, and leave out those without."
            )
        order = np.argsort(owners, kind="stable")
        arrays = TargetArrays(order, owners[order], np.concatenate([[0], np.cumsum(counts)]))
        for array in (owners, *arrays):
            array.setflags(write=False)
        object.__setattr__(self, "owners", owners)
        object.__setattr__(self, "arrays", arrays)

    @classmethod
    def one_per_worker(cls, workers: int, seed: int = 0) -> Self:
        """Return targets that are the workers themselves."""
        return cls(np.arange(workers), seed)

    @property
    def workers(self) -> int:
        """The number of workers, W."""
        return len(self.arrays.starts) - 1

    @property
    def are_workers(self) -> bool:
        """Whether every worker has one target, at its own position."""
        return len(self) == self.workers

    def __len__(self) -> int:
        return len(self.owners)

    def first_choices(self, hashes: Hashes) -> Numbers:
        """Return the target of each row by hash alone."""
        return self.arrays.targets[self._first_positions(mix(hashes, self.seed))]

    def pairs(self, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Return both choices of each row, as positions.

        The first one is any target, the second one any target of another worker, all with the same probability. With a
        single worker the second choice is one of its targets.
        """
        first, second = np.empty((2, len(hashes)), np.int64)
        for start in range(0, len(hashes), _CHUNK):
            some = slice(start, start + _CHUNK)
            self._fill_pairs(mix(hashes[some], self.seed), first[some], second[some])
        return first, second

    def _fill_pairs(self, mixed: npt.NDArray[np.uint64], first: Numbers, second: Numbers) -> None:
        starts, m = self.arrays.starts, len(self)
        first[:] = self._first_positions(mixed)
        owner = first if self.are_workers else self.arrays.workers[first]
        ends = owner + 1 if self.are_workers else starts[owner + 1]
        others = m - 1 if self.are_workers else m - (ends - starts[owner])
        mixed &= _LOW
        mixed *= np.asarray(others).astype(np.uint64)
        mixed >>= _HALF
        np.add(ends, mixed.view(np.int64), out=second)
        np.subtract(second, m, out=second, where=second >= m)

    def of_worker(self, hashes: Hashes, workers: Numbers) -> Numbers:
        """Return the target that each row uses on a given worker: one per key and worker."""
        starts = self.arrays.starts
        first = starts[workers]
        counts = (starts[workers + 1] - first).astype(np.uint64)
        low = mix(hashes, self.seed) & _LOW
        return self.arrays.targets[first + (low * counts >> _HALF).view(np.int64)]

    def _first_positions(self, mixed: npt.NDArray[np.uint64]) -> Numbers:
        return ((mixed >> _HALF) * np.uint64(len(self)) >> _HALF).view(np.int64)


def mix(hashes: Hashes, seed: int) -> npt.NDArray[np.uint64]:
    """Return 64 new bits for each hash: both halves depend on all bits of the hash and the seed."""
    mixed = hashes.view(np.uint64) ^ np.uint64(seed * int(PRIME_1) & 0xFFFFFFFFFFFFFFFF)
    mixed ^= mixed >> np.uint64(33)
    mixed *= PRIME_2
    mixed ^= mixed >> np.uint64(29)
    mixed *= PRIME_3
    mixed ^= mixed >> _HALF
    return mixed
