"""Execution-time sketches: how long the rows of a cost key take, in two small matrices.

A node adds every row, or every group of rows, with the seconds that it took. A sender divides the matrices cell by cell
and so estimates what a row will take. All sketches of a stage share one `SketchShape`, or they could not be merged.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import as_read_only, load_compiled

Hashes = npt.NDArray[np.int64] | npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int64]  # one row per sketch row, one column per hash

_MOST_COLUMNS = 1 << 20
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


@dataclass(frozen=True)
class SketchShape:
    """The size of a sketch and the seed of its hash functions, h_i(x) = ((a_i x + b_i) mod 2^64) scaled to columns.

    Symbols of paper 004: r `rows`, c `columns`. The top bits of a random linear function are a 2-universal family.
    """

    rows: int = 4
    columns: int = 55
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or not 1 <= self.columns <= _MOST_COLUMNS or self.seed < 0:
            raise InvalidJob(
                f"a sketch cannot have {self.rows} rows, {self.columns} columns and the seed {self.seed}. Use at least "
                f"one row, 1 to {_MOST_COLUMNS:,} columns and a seed of at least 0."
            )

    @classmethod
    def of_precision(cls, epsilon: float = 0.05, delta: float = 0.1, seed: int = 0) -> Self:
        """Return the shape whose counts are off by more than `epsilon` of all rows with probability `delta` at most.

        r = ceil(log2 1/delta) and c = ceil(e / epsilon). The paper writes log and means log2: its 0.1 gives 4 rows.
        """
        if not (epsilon > 0 and 0 < delta < 1):
            raise InvalidJob(
                f"no sketch has the precision epsilon={epsilon:g}, delta={delta:g}. "
                "Use epsilon above 0 and delta between 0 and 1."
            )
        return cls(max(1, math.ceil(math.log2(1 / delta))), math.ceil(math.e / epsilon), seed)

    @cached_property
    def factors(self) -> npt.NDArray[np.uint64]:
        """The pairs (a_i, b_i) of the hash functions; every a_i is odd."""
        drawn = np.random.default_rng(self.seed).integers(0, 2**64, (self.rows, 2), np.uint64, endpoint=False)
        drawn[:, 0] |= np.uint64(1)
        drawn.setflags(write=False)
        return drawn

    def columns_of(self, hashes: Hashes) -> Columns:
        """Return the column of each hash in each row of a sketch."""
        values = hashes.view(np.uint64)
        high = (self.factors[:, :1] * values + self.factors[:, 1:]) >> _HALF
        return ((high * np.uint64(self.columns)) >> _HALF).astype(np.int64)


class ExecutionSketch:
    """Rows (F) and seconds (W) of cost keys, as two count-min sketches with the same hash functions.

    Invariant: every row of F sums to the number of rows added, every row of W to their seconds. Sketches of one shape
    merge by addition. Costs O(r) per row: about 10 ns compiled; 16 r c bytes. Not thread-safe.
    """

    def __init__(self, shape: SketchShape, frequencies: Counts | None = None, seconds: Floats | None = None) -> None:
        size = shape.rows, shape.columns
        self.shape = shape
        self.frequencies = np.zeros(size, np.int64) if frequencies is None else frequencies
        self.seconds = np.zeros(size) if seconds is None else seconds
        for matrix, kind in (self.frequencies, np.int64), (self.seconds, np.float64):
            if matrix.shape != size or matrix.dtype != kind:
                raise InvalidJob(
                    f"a matrix of {matrix.dtype} {matrix.shape} does not fit a sketch of {np.dtype(kind)} {size}. "
                    "Build every sketch of a stage with the same shape."
                )

    @property
    def rows(self) -> int:
        """The number of rows added."""
        return int(self.frequencies[0].sum())

    def add(self, hashes: Hashes, seconds: Floats) -> None:
        """Add rows, given by the hashes of their cost keys, with the seconds that each took."""
        self.add_groups(hashes, np.ones(len(hashes), np.int64), seconds)

    def add_groups(self, hashes: Hashes, rows: Counts, seconds: Floats) -> None:
        """Add groups of rows of one cost key each, with their number of rows and their seconds together."""
        add_groups = load_compiled("shuffle.compiled_shuffle", "add_groups")
        if add_groups is None:
            self.add_with_numpy(hashes, rows, seconds)
        else:
            given = (np.ascontiguousarray(one) for one in (hashes.view(np.uint64), rows, seconds))
            add_groups(self.shape.factors, *map(as_read_only, given), self.frequencies, self.seconds)

    def add_with_numpy(self, hashes: Hashes, rows: Counts, seconds: Floats) -> None:
        """Do the same without a compiler; the order of additions is that of the rows."""
        for row, columns in enumerate(self.shape.columns_of(hashes)):
            np.add.at(self.frequencies[row], columns, rows)
            np.add.at(self.seconds[row], columns, seconds)

    def merge(self, other: "ExecutionSketch") -> None:
        """Add all rows of another sketch of the same shape."""
        if other.shape != self.shape:
            raise InvalidJob(f"cannot merge sketches of {self.shape} and {other.shape}. Use one shape for a stage.")
        self.frequencies += other.frequencies
        self.seconds += other.seconds

    def copy(self) -> "ExecutionSketch":
        return ExecutionSketch(self.shape, self.frequencies.copy(), self.seconds.copy())

    def clear(self) -> None:
        self.frequencies[:] = 0
        self.seconds[:] = 0

    def mean_seconds(self) -> Floats:
        """Return W / F of every cell, 0 where no row was added: the paper's snapshot S."""
        return np.divide(self.seconds, self.frequencies, out=np.zeros(self.seconds.shape), where=self.frequencies > 0)


def relative_change(before: Floats, sketch: ExecutionSketch, *, by_frequency: bool) -> float:
    """Return how far the means of a sketch are from those of an earlier snapshot S: eta of the paper.

    eta = sum |S - W / F| / sum S over all cells; with `by_frequency`, both sums weigh a cell by its F.
    """
    weights = sketch.frequencies if by_frequency else np.ones(before.shape)
    total = float((weights * before).sum())
    change = float((weights * np.abs(before - sketch.mean_seconds())).sum())
    return change / total if total else math.inf
