"""Random planning questions, small enough for brute force and nasty on purpose."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import hypothesis.strategies as st
import numpy as np

from migration import Assignment, Workload


@dataclass(frozen=True)
class Question:
    current: Assignment
    nodes: int
    workload: Workload
    tau: float
    leaving: tuple[str, ...]
    allow_idle: bool


def weights(tasks: int) -> st.SearchStrategy[list[float]]:
    """Zeros, ties, skew, all alike, or plain floats."""
    few = st.integers(0, 2).map(float)
    skewed = st.sampled_from([0.0, 1.0, 1.0, 1.0, 50.0])
    floats = st.floats(0, 100, allow_subnormal=False).map(lambda value: round(value, 3))
    return st.one_of(
        st.just([0.0] * tasks),
        st.just([1.0] * tasks),
        *(st.lists(kind, min_size=tasks, max_size=tasks) for kind in (few, skewed, floats)),
    )


@st.composite
def workloads(draw: st.DrawFn, tasks: int) -> Workload:
    return Workload(draw(weights(tasks)), draw(weights(tasks)))


@st.composite
def assignments(draw: st.DrawFn, tasks: int, most_nodes: int = 6) -> Assignment:
    """Idle nodes included: equal boundaries are as likely as others."""
    inner = draw(st.lists(st.integers(0, tasks), max_size=most_nodes - 1).map(sorted))
    nodes = tuple(f"node-{index}" for index in range(1, len(inner) + 2))
    return Assignment(nodes, (0, *inner, tasks))


def intervals(*lengths: int) -> Assignment:
    """Nodes node-1, node-2, ... with so many tasks each, left to right, as the papers write partitions."""
    return Assignment(tuple(f"node-{number}" for number in range(1, len(lengths) + 1)), (0, *accumulate(lengths)))


taus = st.sampled_from([0.0, 0.1, 0.2, 0.4, 1.0, 5.0])


@st.composite
def questions(draw: st.DrawFn, most_tasks: int = 8) -> Question:
    tasks = draw(st.integers(1, most_tasks))
    current = draw(assignments(tasks))
    allow_idle = draw(st.booleans())
    nodes = draw(st.integers(1, tasks + 2 if allow_idle else tasks))
    leaving = draw(st.lists(st.sampled_from(current.nodes), unique=True, max_size=2))
    return Question(current, nodes, draw(workloads(tasks)), draw(taus), tuple(leaving), allow_idle)


def random_question(seed: int, most_tasks: int = 8) -> Question:
    """The same kind of question from a seed: thousands a second, for the oracle."""
    rng = random.Random(seed)  # noqa: S311
    tasks = rng.randint(1, most_tasks)

    def some_weights() -> list[float]:
        kinds: list[Callable[[], float]] = [
            lambda: 0.0,
            lambda: 1.0,
            lambda: float(rng.randint(0, 2)),
            lambda: rng.choice([0.0, 1.0, 1.0, 50.0]),
            lambda: round(rng.uniform(0, 100), 3),
        ]
        kind = rng.choice(kinds)
        return [kind() for _ in range(tasks)]

    inner = sorted(rng.randint(0, tasks) for _ in range(rng.randint(0, 5)))
    names = tuple(f"node-{index}" for index in range(1, len(inner) + 2))
    allow_idle = rng.random() < 0.3
    return Question(
        Assignment(names, (0, *inner, tasks)),
        rng.randint(1, tasks + 2 if allow_idle else tasks),
        Workload(some_weights(), some_weights()),
        rng.choice([0.0, 0.1, 0.2, 0.4, 1.0, 5.0]),
        tuple(rng.sample(names, rng.choice([0, 0, min(1, len(names)), min(2, len(names))]))),
        allow_idle,
    )


def skewed_workload(tasks: int, seed: int, sigma: float = 0.3) -> Workload:
    """The log-normal work and state of the experiments."""
    rng = np.random.default_rng(seed)
    return Workload(rng.lognormal(0, sigma, tasks), rng.lognormal(0, sigma, tasks))
