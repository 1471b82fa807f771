"""Partitioners: which target each row of a stream goes to, by the name of the algorithm."""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from elastic.routing.splitting import reference
from elastic.routing.splitting.head_choices import (
    choose_targets_with_heads,
    count_choices,
    create_sketch,
    head_share,
    route_with_heads,
)
from elastic.routing.splitting.key_assignments import KeyAssignments, KeyFrequencies
from elastic.routing.splitting.pair_split import split_pairs
from elastic.routing.splitting.targets import Hashes, Numbers, Targets
from elastic.routing.splitting.two_choices import choose_targets

_ROWS_PER_CHOICE = 1 << 14  # how often D-Choices computes d


class Partitioner(Protocol):
    """Sends rows to targets, and estimates the loads of their workers by the rows it has sent.

    `loads` may be changed between two calls, for example to what workers report. Rows are routed in order, and calls
    with parts of a stream give the same targets as one call, except for those that divide whole batches.
    """

    loads: Numbers  # by worker

    def partition(self, hashes: Hashes) -> Numbers:
        """Return the target of each row, by the hash of its key, and add the rows to `loads`."""
        ...


class _Base:
    def __init__(self, targets: Targets) -> None:
        self.targets = targets
        self.loads: Numbers = np.zeros(targets.workers, np.int64)

    def _count(self, chosen: Numbers) -> Numbers:
        self.loads += np.bincount(self.targets.owners[chosen], minlength=len(self.loads))
        return chosen


class HashPartitioner(_Base):
    """Key grouping: the target of the hash."""

    def partition(self, hashes: Hashes) -> Numbers:
        return self._count(self.targets.first_choices(hashes))


class ShufflePartitioner(_Base):
    """Shuffle grouping: workers in turn, regardless of the key."""

    def partition(self, hashes: Hashes) -> Numbers:
        workers = (int(self.loads.sum()) + np.arange(len(hashes))) % len(self.loads)
        return self._count(self.targets.of_worker(hashes, workers))


class UnsplitPartitioner(_Base):
    """PoTC and On-Greedy: keys are not split; the first row of a key decides for all."""

    def __init__(self, targets: Targets, *, is_greedy: bool) -> None:
        super().__init__(targets)
        self.assignments = KeyAssignments(targets, is_greedy=is_greedy)

    def partition(self, hashes: Hashes) -> Numbers:
        return self.assignments.route(hashes, self.loads)


class PartialKeyPartitioner(_Base):
    """PKG: the less loaded of two choices, for every row."""

    def partition(self, hashes: Hashes) -> Numbers:
        return choose_targets(hashes, self.targets, self.loads)


class PairSplitPartitioner(_Base):
    """PKG for whole batches, without a compiler."""

    def partition(self, hashes: Hashes) -> Numbers:
        return split_pairs(hashes, self.targets, self.loads)


class WChoicesPartitioner(_Base):
    """PKG, except that rows of the head go to the least loaded worker."""

    def __init__(self, targets: Targets) -> None:
        super().__init__(targets)
        self.sketch = create_sketch(targets.workers)

    def partition(self, hashes: Hashes) -> Numbers:
        return choose_targets_with_heads(hashes, self.targets, self.loads, self.sketch)


class DChoicesPartitioner(_Base):
    """PKG, except that keys of the head have as many choices as they need, computed anew every 16,384 rows."""

    def __init__(self, targets: Targets) -> None:
        super().__init__(targets)
        self.choices = 2
        self._share = head_share(targets.workers)
        self._sketch = create_sketch(targets.workers)
        self._slow_sketch = reference.ReferenceSketch(self._sketch.capacity)
        self._rows = 0

    def partition(self, hashes: Hashes) -> Numbers:
        chosen = np.empty(len(hashes), np.int64)
        start = 0
        while start < len(hashes):
            if self._rows % _ROWS_PER_CHOICE == 0:
                self.choices = self._count_choices()
            stop = start + _ROWS_PER_CHOICE - self._rows % _ROWS_PER_CHOICE
            chosen[start:stop] = self._route(hashes[start:stop])
            self._rows += len(hashes[start:stop])
            start = stop
        return chosen

    def _route(self, hashes: Hashes) -> Numbers:
        choices = self.choices if self.choices < len(self.loads) else 0
        routed = route_with_heads(hashes, self.targets, self.loads, self._sketch, self._share, choices)
        if routed is not None:
            return routed
        words, sketch = hashes.view(np.uint64), self._slow_sketch
        return np.array(reference.route_with_heads(words, self.targets, self.loads, sketch, self._share, choices))

    def _count_choices(self) -> int:
        if self._slow_sketch.rows:
            counts, rows = np.sort(self._slow_sketch.counts)[::-1], self._slow_sketch.rows
        else:
            counts, rows = self._sketch.heaviest().counts, self._sketch.rows
        shares = counts / max(rows, 1)
        return count_choices(shares[shares >= self._share], len(self.loads))


def create_off_greedy(targets: Targets, frequencies: KeyFrequencies) -> UnsplitPartitioner:
    """Return the partitioner that knows how many rows each key will have; it assigns the heaviest keys first."""
    partitioner = UnsplitPartitioner(targets, is_greedy=True)
    partitioner.assignments.assign_all(frequencies)
    return partitioner


PARTITIONERS: Mapping[str, Callable[[Targets, KeyFrequencies], Partitioner]] = {
    "hash": lambda targets, _: HashPartitioner(targets),
    "shuffle": lambda targets, _: ShufflePartitioner(targets),
    "potc": lambda targets, _: UnsplitPartitioner(targets, is_greedy=False),
    "on-greedy": lambda targets, _: UnsplitPartitioner(targets, is_greedy=True),
    "off-greedy": create_off_greedy,
    "pkg": lambda targets, _: PartialKeyPartitioner(targets),
    "pair-split": lambda targets, _: PairSplitPartitioner(targets),
    "d-choices": lambda targets, _: DChoicesPartitioner(targets),
    "w-choices": lambda targets, _: WChoicesPartitioner(targets),
}
"""By name; given the targets, and the frequencies of keys, which only Off-Greedy knows in advance."""
