"""All balanced partitions onto n nodes, numbered, without keeping any of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdp.errors import UnknownPartition
from mdp.kernels import paths
from mdp.kernels.paths import Ints
from migration.kernels.shared import band


@dataclass(frozen=True, eq=False)
class Lattice:
    """Partitions of m tasks into `parts` intervals within the cap, as paths through layers of boundaries.

    A partition is known by its rank in lexicographic order, 0 to `count` - 1. `edge_at` and `begin` number the edges
    (k, a, x) of all paths, and `edge_rank` is what an edge adds to a rank; see `mdp.kernels.paths`. Memory is that of
    the edges, not of the partitions.
    """

    parts: int
    first: Ints
    low: Ints = field(init=False, repr=False)
    high: Ints = field(init=False, repr=False)
    furthest: Ints = field(init=False, repr=False)
    before: Ints = field(init=False, repr=False)
    edge_at: Ints = field(init=False, repr=False)
    begin: Ints = field(init=False, repr=False)
    edge_rank: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        low, high = band(self.first, self.parts, False)
        furthest = np.searchsorted(self.first, np.arange(len(self.first)), side="right") - 1
        before = paths.ways_before(low, high, furthest)
        edge_at, begin = paths.edge_starts(low, high, self.first)
        ranks = paths.edge_ranks(low, high, before, edge_at, begin)
        for name, value in zip(
            ("low", "high", "furthest", "before", "edge_at", "begin", "edge_rank"),
            (low, high, furthest, before, edge_at, begin, ranks),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    @property
    def tasks(self) -> int:
        return len(self.first) - 1

    @property
    def count(self) -> int:
        return int(self.before[0, -1])

    @property
    def edges(self) -> int:
        return len(self.edge_rank)

    def __contains__(self, boundaries: Sequence[int]) -> bool:
        path = np.asarray(boundaries, np.int64)
        if path.shape != (self.parts + 1,) or path[0] != 0 or path[-1] != self.tasks:
            return False
        return bool((path[1:] > path[:-1]).all() and (self.first[path[1:]] <= path[:-1]).all())

    def rank(self, boundaries: Sequence[int]) -> int:
        if boundaries not in self:
            raise UnknownPartition(
                f"{tuple(boundaries)} is no balanced partition of {self.tasks} tasks onto {self.parts} nodes. "
                "Project again with the workload of today, or with a larger tau."
            )
        return int(paths.rank_of(np.asarray(boundaries, np.int64), self.low, self.before))

    def partition(self, rank: int) -> tuple[int, ...]:
        if not 0 <= rank < self.count:
            raise UnknownPartition(f"rank {rank} is not one of {self.count:,} partitions. Give 0 to {self.count - 1}.")
        path = np.empty(self.parts + 1, np.int64)
        paths.path_of(rank, self.low, self.before, path)
        return tuple(path.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.parts, self.first)
