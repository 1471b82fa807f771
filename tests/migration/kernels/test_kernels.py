"""Compiled and plain kernels must be the same function, and the choice between them visible."""

import os
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from migration.kernels import Floats, shared, vectorised
from tests.migration.instances import Question, questions, skewed_workload

compiled = pytest.importorskip("migration.kernels.compiled")


def frozen(array: Floats) -> Floats:
    array.setflags(write=False)
    return array


@settings(max_examples=max(100, settings().max_examples))
@given(questions(most_tasks=14), st.integers(0, 10_000), st.sampled_from(["none", "boundary", "both"]))
def test_both_kernels_choose_the_same_boundaries_to_the_last_bit(question: Question, seed: int, costs: str) -> None:
    workload, tasks = question.workload, question.workload.tasks
    rng = np.random.default_rng(seed)
    boundary = np.zeros(tasks + 1) if costs == "none" else rng.normal(size=tasks + 1)
    interval = rng.normal(size=(tasks + 1, tasks + 1)) if costs == "both" else np.empty((0, 0))
    allowed = (1 + question.tau) * workload.total_work / question.nodes * (1 + 1e-9)
    first = compiled.lightest_starts(workload.work_prefix, allowed)
    assert first.tolist() == vectorised.lightest_starts(workload.work_prefix, allowed).tolist()
    old = np.unique(question.current.boundaries)
    arguments = (
        workload.work_prefix,
        workload.state_prefix,
        first,
        old,
        min(question.nodes, tasks),
        question.allow_idle,
        frozen(boundary),
        frozen(interval),
    )
    assert compiled.partition(*arguments).tolist() == vectorised.partition(*arguments).tolist()


@given(st.integers(0, 10_000))
def test_both_kernels_agree_on_costs_and_on_what_is_superfluous(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gain = skewed_workload(12, seed).state_prefix
    rows = np.array([[0, *sorted(rng.choice(np.arange(1, 12), 3, replace=False)), 12] for _ in range(12)])
    spent = np.sort(rng.random(12))
    for mine, theirs in zip(
        compiled.cheapest_sources(gain, rows[:5], spent[:5], rows),
        vectorised.cheapest_sources(gain, rows[:5], spent[:5], rows),
        strict=True,
    ):
        assert mine.tolist() == theirs.tolist()
    kept = compiled.undominated(gain, rows, spent, 0.0)
    assert kept.tolist() == vectorised.undominated(gain, rows, spent, 0.0).tolist()
    for row in set(range(12)) - set(kept.tolist()):
        reached = [spent[other] + gain[-1] - shared.stay(gain, rows[other], rows[row]) for other in kept]
        assert min(reached) <= spent[row]


PLAN_AND_NAME = (
    "from migration import *; "
    "made = plan(Assignment.even(64, 8), 10, Workload([1 + (7 * t) % 5 for t in range(64)])); "
    "print(kernel_info().name, made.cost)"
)


def run(program: str, **environment: str) -> list[str]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_plain_kernels_are_used_when_asked_for() -> None:
    kernel, _, cost = run(PLAN_AND_NAME, ELASTIC_KERNEL="numpy")
    assert kernel == "numpy"
    kernel, _, same_cost = run(PLAN_AND_NAME)
    assert (kernel, same_cost) == ("numba", cost)


def test_without_a_place_for_a_cache_the_kernels_are_compiled_all_the_same() -> None:
    nowhere = "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []; "
    kernel_and_cache = (
        nowhere + "from migration import kernel_info; print(kernel_info().name, repr(kernel_info().cache))"
    )
    kernel, _, cache = run(kernel_and_cache)
    assert (kernel, cache) == ("numba", "''")


def test_the_plain_kernels_are_used_when_there_is_no_compiler() -> None:
    without_numba = "import sys; sys.modules['numba'] = None; "
    assert run(without_numba + PLAN_AND_NAME)[0] == "numpy"


def test_a_loop_that_exists_once_is_left_as_it_is_when_there_is_no_compiler() -> None:
    ask = "from migration.optional_compiling import compiled; f = lambda x: x; print(compiled(f) is f)"
    assert run("import sys; sys.modules['numba'] = None; " + ask) == ["True"]
    assert run(ask) == ["False"]
