"""Projected migration costs, exact: modified policy iteration over all balanced partitions.

Each sweep finds the best target of every partition for every number of nodes that may come next; then the cost of
following these choices is evaluated, which takes next to nothing, and an additive guide is fitted to it. It ends when a
sweep proves that no value is further from the true one than asked.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from mdp.errors import InvalidProjection
from mdp.exact.blocks import Block, blocks_of
from mdp.exact.checkpoint import Checkpoint, laid, lay
from mdp.exact.evaluation import bracket, evaluated
from mdp.exact.guide import Guide, sums_of
from mdp.exact.sweep import Choices, Sweep
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess
from mdp.shelf import MemoryShelf, Shelf
from mdp.workers import Here, Workers

DEFAULT_ERROR = 0.002  # of all state, for the worst of all partitions; those that plans choose are far nearer
MOST_SWEEPS = 60
_TOLERATED = 0.25  # of the error that is asked for: the most by which a choice may miss the best one
_TOLERATED_EARLY = 0.1  # of the error so far: choices need not be much better than the values they are made by


class Progress(NamedTuple):
    """How many blocks of a sweep are done. `error` is what the sweep before proved, a share of all state, or None."""

    sweep: int
    done: int
    blocks: int
    error: float | None
    goal: float
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """Of this sweep."""
        return self.seconds * (self.blocks - self.done) / self.done if self.done else None


@dataclass(frozen=True)
class ExactProjection:
    """C of all balanced partitions by rank, for every node count; none is further off than `error`, in bytes."""

    process: DecisionProcess
    values: Mapping[int, Floats]
    error: float
    sweeps: int
    seconds: float

    @property
    def relative_error(self) -> float:
        return self.error / self.process.workload.total_state


def silent(_progress: Progress) -> None:
    """For whoever does not look."""


def project_exactly(
    process: DecisionProcess,
    *,
    error: float = DEFAULT_ERROR,
    start: Mapping[int, Floats] | None = None,
    workers: Workers | None = None,
    shelf: Shelf | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] = silent,
) -> ExactProjection:
    """C of every balanced partition with a proven error of at most `error` times all state.

    `start` are terms of lattice edges to begin with, by node count (see `mdp.exact.guide`); the better they are, the
    fewer sweeps it takes. Workers share the `shelf`; with `resume` what lies there is gone on with.
    """
    if not 0 < error < 1:
        raise InvalidProjection(f"error is {error!r}. Give a share of all state between 0 and 1, such as 0.002.")
    began = time.monotonic()
    workers, shelf = workers or Here(), shelf or MemoryShelf()
    checkpoint = Checkpoint(shelf, process, error)
    lattices = {nodes: Lattice(nodes, process.first[nodes]) for nodes in process.nodes}
    blocks = list(blocks_of(lattices))
    goal, total = error * process.workload.total_state, process.workload.total_state
    found = checkpoint.latest() if resume else None
    if found is None:
        checkpoint.clear()
        found = 0, _first_sweep(process, lattices, start, goal)
        checkpoint.begin(*found)
    number, sweep = found
    proven: float | None = None
    while True:
        _improve(workers, shelf, number, sweep, blocks, checkpoint, partial(_told, progress, number, proven, error))
        choices = _whole(shelf, number, blocks)
        checkpoint.forget(number - 1)
        best = bracket(process, sweep.values, choices)
        proven = best.error / total if total else 0.0
        if best.error <= goal:
            checkpoint.clear()
            return ExactProjection(process, best.values, best.error, number + 1, time.monotonic() - began)
        if number >= MOST_SWEEPS:
            raise InvalidProjection(
                f"after {number + 1} sweeps the proven error is {proven:.3g} of all state. Ask for a larger error."
            )
        sweep = _next_sweep(process, lattices, sweep, choices, best.error, goal)
        number += 1
        checkpoint.begin(number, sweep)


def _first_sweep(
    process: DecisionProcess, lattices: Mapping[int, Lattice], start: Mapping[int, Floats] | None, goal: float
) -> Sweep:
    terms = start or {nodes: np.zeros(lattice.edges) for nodes, lattice in lattices.items()}
    values = {nodes: sums_of(lattice, terms[nodes]) for nodes, lattice in lattices.items()}
    guides = {nodes: Guide.exactly(terms[nodes]) for nodes in lattices}
    return Sweep(process, values, guides, dict.fromkeys(lattices, 0.0), _tolerated(process, goal))


def _tolerated(process: DecisionProcess, goal: float) -> float:
    """What choices miss adds up over all steps to come: with 1 - gamma of the goal, to at most half of it."""
    return goal * min(_TOLERATED, 1 - process.gamma)


def _next_sweep(
    process: DecisionProcess,
    lattices: Mapping[int, Lattice],
    last: Sweep,
    choices: Mapping[int, Choices],
    error: float,
    goal: float,
) -> Sweep:
    values = evaluated(process, last.values, choices)
    guides = {nodes: Guide.fitted(lattices[nodes], values[nodes]) for nodes in lattices}
    fallen = {nodes: float((last.values[nodes] - values[nodes]).max()) for nodes in lattices}
    tolerance = max(_tolerated(process, goal), _TOLERATED_EARLY * (1 - process.gamma) * error)
    return Sweep(process, values, guides, fallen, tolerance)


def improve_block(sweep: Sweep, shelf: Shelf, number: int, block: Block) -> int:
    """What a worker does with a block: read its last choices, improve them, lay them down. The minima it solved."""
    choices, solved = sweep.improved(block, laid(shelf, number - 1, block))
    lay(shelf, number, block, choices)
    return solved


def _improve(
    workers: Workers,
    shelf: Shelf,
    number: int,
    sweep: Sweep,
    blocks: Sequence[Block],
    checkpoint: Checkpoint,
    told: Callable[[int, int, float], None],
) -> None:
    missing = checkpoint.missing(number, blocks)
    done = len(blocks) - len(missing)
    began = time.monotonic()
    told(done, len(blocks), 0.0)
    workers.map(
        partial(improve_block, sweep, shelf, number),
        missing,
        lambda count: told(done + count, len(blocks), time.monotonic() - began),
    )


def _told(
    progress: Callable[[Progress], None],
    number: int,
    proven: float | None,
    goal: float,
    done: int,
    blocks: int,
    seconds: float,
) -> None:
    progress(Progress(number + 1, done, blocks, proven, goal, seconds))


def _whole(shelf: Shelf, number: int, blocks: Sequence[Block]) -> dict[int, Choices]:
    """The choices of all blocks, by node count."""
    by_nodes: dict[int, list[Choices]] = {}
    for block in blocks:
        choices = laid(shelf, number, block)
        if choices is None:
            raise InvalidProjection(f"block {block.name} of sweep {number} is gone. Begin anew without resume.")
        by_nodes.setdefault(block.nodes, []).append(choices)
    return {nodes: Choices.joined(parts) for nodes, parts in by_nodes.items()}
