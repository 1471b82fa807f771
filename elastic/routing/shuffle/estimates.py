"""Estimates of senders: seconds per row from the sketches of nodes, and the slowness of each node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.shuffle.sketch import Counts, ExecutionSketch, Floats, Hashes, SketchShape

_CHUNK = 1 << 14  # rows at a time, so that what NumPy keeps between two operations stays in the processor's cache


@dataclass(frozen=True, eq=False)
class CostEstimates:
    """The expected seconds of a row by its cost key.

    Of the r cells of a key, the one with the fewest rows has the fewest of other keys; its mean W / F is the estimate
    (Listing III.2 of paper 004; the first such cell on a tie). A key with a cell that no row has met is new: it is
    expected to take the `unseen` seconds, by default the mean of all rows.

    Immutable, so that one value serves all senders; costs O(r) per row, about 10 ns compiled.
    """

    shape: SketchShape
    frequencies: Counts
    seconds: Floats  # per row of each cell

    @classmethod
    def from_sketch(cls, sketch: ExecutionSketch, unseen: float | None = None) -> Self:
        if unseen is None:
            rows = sketch.rows
            unseen = float(sketch.seconds[0].sum()) / rows if rows else 0.0
        frequencies = sketch.frequencies.copy()
        seconds = np.where(frequencies > 0, sketch.mean_seconds(), unseen)
        for matrix in (frequencies, seconds):
            matrix.setflags(write=False)
        return cls(sketch.shape, frequencies, seconds)

    def estimate(self, hashes: Hashes) -> Floats:
        """Return the expected seconds of each row."""
        kernel = load_compiled("shuffle.compiled_shuffle", "estimate_rows")
        if kernel is None:
            return self.estimate_with_numpy(hashes)
        found = np.empty(len(hashes))
        kernel(
            self.shape.factors,
            as_read_only(np.ascontiguousarray(hashes).view(np.uint64)),
            self.frequencies,
            self.seconds,
            found,
        )
        return found

    def estimate_with_numpy(self, hashes: Hashes) -> Floats:
        """Do the same without a compiler."""
        found, rows = np.empty(len(hashes)), np.arange(self.shape.rows)[:, None]
        for start in range(0, len(hashes), _CHUNK):
            columns = self.shape.columns_of(hashes[start : start + _CHUNK])
            fewest = self.frequencies[rows, columns].argmin(axis=0)
            found[start : start + _CHUNK] = self.seconds[fewest, columns[fewest, np.arange(columns.shape[1])]]
        return found


def pool(sketches: Sequence[ExecutionSketch]) -> ExecutionSketch:
    """Return one sketch with the rows of all nodes: a row is then known if any node has met its key."""
    if not sketches:
        raise InvalidJob("cannot pool no sketches. Pass the sketch of at least one node.")
    pooled = sketches[0].copy()
    for sketch in sketches[1:]:
        pooled.merge(sketch)
    return pooled


def measure_slowness(sketches: Sequence[ExecutionSketch], pooled: ExecutionSketch, prior_rows: int = 4_096) -> Floats:
    """Return the time of each node for its rows, relative to that of all nodes for the same cells: 1 is average.

    It is sum W_n / sum F_n W / F over all cells, as if the node had also taken `prior_rows` average rows at the average
    speed: the costs of a few rows differ by more than the nodes do.
    """
    means = pooled.mean_seconds()
    prior = float(pooled.seconds.sum()) / max(1, pooled.rows) * prior_rows
    slowness = np.ones(len(sketches))
    for node, sketch in enumerate(sketches):
        expected = float((sketch.frequencies * means).sum()) + prior
        if expected > 0:
            slowness[node] = (float(sketch.seconds.sum()) + prior) / expected
    return slowness
