"""Decision processes for tests: small enough for brute force, and nasty on purpose. And logs as files."""

import csv
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import numpy as np

from mdp.errors import NothingBalanced
from mdp.kernels.paths import Ints
from mdp.lattice import Lattice
from mdp.learning import Log
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from migration import Workload


def walk(low: int, high: int, reach: float = 0.55, rest: float = 0.3) -> TransitionMatrix:
    """A walk that prefers short steps: the chance of a step falls with its length, and `rest` damps the diagonal."""
    nodes = np.arange(low, high + 1)
    weight = reach ** np.abs(nodes[:, None] - nodes[None, :])
    weight[np.diag_indices(len(nodes))] *= rest
    return TransitionMatrix(nodes.tolist(), weight / weight.sum(axis=1, keepdims=True))


def skewed(tasks: int, seed: int, sigma: float = 0.3) -> Workload:
    """The log-normal work and state of the experiments."""
    rng = np.random.default_rng(seed)
    return Workload(rng.lognormal(0, sigma, tasks), rng.lognormal(0, sigma, tasks))


@st.composite
def processes(draw: st.DrawFn, most_tasks: int = 9) -> DecisionProcess:
    """With zero probabilities, node counts left out, equal and odd tasks, tasks without state."""
    tasks = draw(st.integers(3, most_tasks))
    nodes = sorted(draw(st.sets(st.integers(1, min(tasks, 5)), min_size=1, max_size=3)))
    weight = np.array(
        draw(st.lists(st.sampled_from([0.0, 1.0, 1.0, 3.0]), min_size=len(nodes) ** 2, max_size=len(nodes) ** 2))
    ).reshape(len(nodes), -1)
    weight[weight.sum(axis=1) == 0] = 1.0
    sizes = st.one_of(
        st.just([1.0] * tasks), st.lists(st.sampled_from([0.0, 1.0, 2.0, 7.5]), min_size=tasks, max_size=tasks)
    )
    state = draw(sizes)
    work = [max(size, 0.5) for size in draw(sizes)]
    try:
        return DecisionProcess(
            Workload(work, state if any(state) else [1.0] * tasks),
            TransitionMatrix(nodes, weight / weight.sum(axis=1, keepdims=True)),
            tau=draw(st.sampled_from([0.2, 0.5, 2.0])),
            gamma=draw(st.sampled_from([0.0, 0.5, 0.8, 0.95])),
            relax=True,
        )
    except NothingBalanced:  # relaxed caps always have a partition
        raise AssertionError from None


def edge_numbers(lattice: Lattice, boundaries: Sequence[int]) -> Ints:
    """The edges that the path of a partition uses."""
    path = np.asarray(boundaries, np.int64)
    layer, end = np.arange(1, lattice.parts + 1), path[1:]
    numbers: Ints = lattice.edge_at[layer, end] + path[:-1] - lattice.begin[layer, end]
    return numbers


def write_csv(log: Log, path: Path) -> Path:
    """A log file with the columns `timestamp` and `value`."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["timestamp", "value"])
        for time, value in zip(log.times.astype("datetime64[s]"), log.values.astype(np.int64).tolist(), strict=True):
            writer.writerow([str(time).replace("T", " "), value])
    return path
