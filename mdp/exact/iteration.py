"""Exact projected migration costs: modified policy iteration over all balanced partitions.

Each sweep finds the best target of every partition for every node count that may come next; evaluating the cost of
these choices, and fitting an additive guide to it, takes little time. It ends when a sweep proves that no value is
further from the true one than the requested error.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mdp.array_store import ArrayStore, MemoryArrayStore
from mdp.errors import InvalidProjection
from mdp.exact.checkpoint import Checkpoint, load_choices, save_choices
from mdp.exact.evaluation import bound_values, evaluate_policy
from mdp.exact.guide import EdgeGuide, sum_terms
from mdp.exact.sweep import Block, Choices, Sweep, split_into_blocks
from mdp.kernels.paths import Floats
from mdp.lattice import Lattice
from mdp.process import DecisionProcess
from mdp.progress import SweepProgress, ignore_progress
from mdp.workers import LocalWorkers, Workers

DEFAULT_ERROR = 0.002  # of all state, for the worst partition; those that plans choose are far more accurate
MAX_SWEEPS = 60
_TOLERATED = 0.25  # of the requested error: the most by which a choice may miss the best one
_TOLERATED_EARLY = 0.1  # of the error so far: choices need not be much better than the values they are made by


@dataclass(frozen=True)
class ExactProjection:
    """C of all balanced partitions by rank, for every node count; no value is off by more than `error`, in bytes."""

    process: DecisionProcess
    values: Mapping[int, Floats]
    error: float
    sweeps: int
    seconds: float

    @property
    def relative_error(self) -> float:
        return self.error / self.process.workload.total_state


def project_exactly(
    process: DecisionProcess,
    *,
    error: float = DEFAULT_ERROR,
    start: Mapping[int, Floats] | None = None,
    workers: Workers | None = None,
    array_store: ArrayStore | None = None,
    resume: bool = False,
    progress: Callable[[SweepProgress], None] = ignore_progress,
) -> ExactProjection:
    """Compute C of every balanced partition with a proven error of at most `error` times all state.

    `start` holds initial terms of lattice edges by node count (see `mdp.exact.guide`); the better they are, the fewer
    sweeps are needed. Workers share the `array_store`; with `resume` the projection continues from its checkpoint.
    """
    if not 0 < error < 1:
        raise InvalidProjection(f"error is {error!r}. Give a share of all state between 0 and 1, such as 0.002.")
    began = time.monotonic()
    workers, array_store = workers or LocalWorkers(), array_store or MemoryArrayStore()
    checkpoint = Checkpoint(array_store, process, error)
    lattices = {nodes: Lattice(nodes, process.first[nodes]) for nodes in process.nodes}
    blocks = list(split_into_blocks(lattices))
    goal, total = error * process.workload.total_state, process.workload.total_state
    found = checkpoint.latest() if resume else None
    if found is None:
        checkpoint.clear()
        found = 0, _first_sweep(process, lattices, start, goal)
        checkpoint.save(*found)
    number, sweep = found
    proven: float | None = None
    while True:
        _improve(
            workers,
            array_store,
            number,
            sweep,
            blocks,
            checkpoint,
            partial(_report_block, progress, number, proven, error),
        )
        choices = _collect_choices(array_store, number, blocks)
        checkpoint.delete(number - 1)
        best = bound_values(process, sweep.values, choices)
        proven = best.error / total if total else 0.0
        if best.error <= goal:
            checkpoint.clear()
            return ExactProjection(process, best.values, best.error, number + 1, time.monotonic() - began)
        if number >= MAX_SWEEPS:
            raise InvalidProjection(
                f"after {number + 1} sweeps the proven error is {proven:.3g} of all state. Request a larger error."
            )
        sweep = _next_sweep(process, lattices, sweep, choices, best.error, goal)
        number += 1
        checkpoint.save(number, sweep)


def _first_sweep(
    process: DecisionProcess, lattices: Mapping[int, Lattice], start: Mapping[int, Floats] | None, goal: float
) -> Sweep:
    terms = start or {nodes: np.zeros(lattice.edges) for nodes, lattice in lattices.items()}
    values = {nodes: sum_terms(lattice, terms[nodes]) for nodes, lattice in lattices.items()}
    guides = {nodes: EdgeGuide.exactly(terms[nodes]) for nodes in lattices}
    return Sweep(process, values, guides, dict.fromkeys(lattices, 0.0), _tolerance(process, goal))


def _tolerance(process: DecisionProcess, goal: float) -> float:
    """Errors of choices add up over all future steps: with 1 - gamma of the goal, to at most half of it."""
    return goal * min(_TOLERATED, 1 - process.gamma)


def _next_sweep(
    process: DecisionProcess,
    lattices: Mapping[int, Lattice],
    last: Sweep,
    choices: Mapping[int, Choices],
    error: float,
    goal: float,
) -> Sweep:
    values = evaluate_policy(process, last.values, choices)
    guides = {nodes: EdgeGuide.fit(lattices[nodes], values[nodes]) for nodes in lattices}
    fallen = {nodes: float((last.values[nodes] - values[nodes]).max()) for nodes in lattices}
    tolerance = max(_tolerance(process, goal), _TOLERATED_EARLY * (1 - process.gamma) * error)
    return Sweep(process, values, guides, fallen, tolerance)


def improve_block(sweep: Sweep, array_store: ArrayStore, number: int, block: Block) -> int:
    """Improve a block on a worker: load its last choices, improve and save them; return the number of minima solved."""
    choices, solve_normal_equations = sweep.improve(block, load_choices(array_store, number - 1, block))
    save_choices(array_store, number, block, choices)
    return solve_normal_equations


def _improve(
    workers: Workers,
    array_store: ArrayStore,
    number: int,
    sweep: Sweep,
    blocks: Sequence[Block],
    checkpoint: Checkpoint,
    report: Callable[[int, int, float], None],
) -> None:
    pending = checkpoint.pending(number, blocks)
    done = len(blocks) - len(pending)
    began = time.monotonic()
    report(done, len(blocks), 0.0)
    workers.map(
        partial(improve_block, sweep, array_store, number),
        pending,
        lambda count: report(done + count, len(blocks), time.monotonic() - began),
    )


def _report_block(
    progress: Callable[[SweepProgress], None],
    number: int,
    proven: float | None,
    goal: float,
    done: int,
    blocks: int,
    seconds: float,
) -> None:
    progress(SweepProgress(number + 1, done, blocks, proven, goal, seconds))


def _collect_choices(array_store: ArrayStore, number: int, blocks: Sequence[Block]) -> dict[int, Choices]:
    """The choices of all blocks, by node count."""
    by_nodes: dict[int, list[Choices]] = {}
    for block in blocks:
        choices = load_choices(array_store, number, block)
        if choices is None:
            raise InvalidProjection(f"block {block.name} of sweep {number} is missing. Start again without resume.")
        by_nodes.setdefault(block.nodes, []).append(choices)
    return {nodes: Choices.concatenate(parts) for nodes, parts in by_nodes.items()}
