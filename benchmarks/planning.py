"""The time of planning, and how it grows: `make bench-plan`."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np

from benchmarks.report import RESULTS, Timing, duration, table, timed
from migration import Assignment, Ownership, Workload, kernel_info, plan, plan_sequence
from migration.planning import balance
from migration.planning.search import best_partition


class Case(NamedTuple):
    tasks: int
    nodes: int
    target: int
    tau: float
    goal: float | None = None  # seconds


GOALS = [
    Case(64, 8, 16, 0.2, 100e-6),
    Case(64, 16, 8, 0.2, 100e-6),
    Case(1_024, 32, 40, 0.2, 1e-3),
    Case(65_536, 256, 300, 0.05, 0.1),
]
GROWTH_WITH_TASKS = [Case(2**power, 32, 40, 0.2) for power in range(7, 17)]
GROWTH_WITH_NODES = [Case(16_384, 64, target, 0.1) for target in (2, 8, 32, 64, 128, 512, 2_048)]

FIRST_PLAN = (
    "import time; began = time.perf_counter(); "
    "from migration import *; plan(Assignment.even(64, 8), 10, Workload.uniform(64)); "
    "print(time.perf_counter() - began)"
)


def make_problem(case: Case, seed: int = 1) -> tuple[Ownership, Workload]:
    """Log-normal work and state, and a balanced assignment to start from."""
    rng = np.random.default_rng(seed)
    workload = Workload(rng.lognormal(0, 0.3, case.tasks), rng.lognormal(0, 0.3, case.tasks))
    start = plan(Assignment.even(case.tasks, case.nodes), case.nodes, workload, case.tau, relax=True)
    return start.target, workload


def time_call(case: Case) -> Timing:
    """Time the whole call: from Python objects to a Plan with its moves."""
    current, workload = make_problem(case)
    return timed(lambda: plan(current, case.target, workload, case.tau, relax=True))


def time_kernel(case: Case) -> Timing:
    current, workload = make_problem(case)
    old = np.array([run.start for run in current.runs] + [case.tasks])
    cap = max(balance.cap(workload, case.target, case.tau), balance.smallest_cap(workload, case.target))
    first = balance.earliest_starts(workload, cap)
    work, gain = workload.work_prefix, workload.state_prefix
    return timed(lambda: best_partition(work, gain, first, old, case.target))


def time_first_plan(environment: dict[str, str]) -> list[float]:
    """Seconds of the first plan in a new process, imports included, with compiled code from the cache."""
    seconds = []
    for _ in range(7):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", FIRST_PLAN],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        seconds.append(float(done.stdout))
    return seconds


def format_cases(cases: list[Case], timings: list[Timing], kernels: list[Timing]) -> list[list[str]]:
    rows = []
    for case, timing, kernel in zip(cases, timings, kernels, strict=True):
        goal = "" if case.goal is None else duration(case.goal)
        met = "" if case.goal is None else ("yes" if timing.median <= case.goal else "NO")
        name = f"{case.tasks:,} tasks, {case.nodes} -> {case.target} nodes, tau {case.tau:g}"
        rows.append([name, duration(timing.median), duration(timing.p90), duration(kernel.median), goal, met])
    return rows


def measure_sequences() -> list[list[str]]:
    rows = []
    for tasks, counts, tau in ((32, [6, 5, 7, 4], 0.2), (64, [10, 12, 9], 0.2), (64, [10, 12, 9, 11, 8], 0.2)):
        current, workload = make_problem(Case(tasks, 8, 8, tau))
        row = [f"{tasks} tasks, 8 -> " + " -> ".join(map(str, counts))]
        for options in ({}, {"limit": 0, "fallback": "beam"}, {"limit": 0, "fallback": "ssm"}):
            made = plan_sequence(current, counts, workload, tau, **options)  # type: ignore[arg-type]
            spent = timed(lambda: plan_sequence(current, counts, workload, tau, **options), 0.5, 3)  # type: ignore[arg-type] # noqa: B023
            row += [f"{sum(step.cost for step in made) / workload.total_state:.1%}", duration(spent.median)]
        rows.append(row)
    return rows


def draw(path: Path, tasks: list[Timing], nodes: list[Timing]) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.loglog([case.tasks for case in GROWTH_WITH_TASKS], [timing.median * 1e3 for timing in tasks], "o-")
    left.set(xlabel="tasks m (32 -> 40 nodes, tau 0.2)", ylabel="milliseconds per plan", title="growth with tasks")
    right.loglog([case.target for case in GROWTH_WITH_NODES], [timing.median * 1e3 for timing in nodes], "o-")
    right.set(xlabel="target nodes n' (m = 16,384, from 64, tau 0.1)", title="growth with nodes")
    for axes in (left, right):
        axes.grid(visible=True, which="both", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    kernel = kernel_info()
    print(f"kernels: {kernel.name}, cached in {kernel.cache or 'nothing to cache'}")
    header = ["plan(strategy='ssm')", "median", "p90", "kernel alone", "goal", "met"]
    goals = format_cases(GOALS, [*map(time_call, GOALS)], [*map(time_kernel, GOALS)])
    print(table("complete calls", header, goals), flush=True)
    by_tasks, by_nodes = [*map(time_call, GROWTH_WITH_TASKS)], [*map(time_call, GROWTH_WITH_NODES)]
    kernels = [*map(time_kernel, GROWTH_WITH_TASKS)]
    print(
        table("growth with tasks", header[:4], [row[:4] for row in format_cases(GROWTH_WITH_TASKS, by_tasks, kernels)])
    )
    kernels = [*map(time_kernel, GROWTH_WITH_NODES)]
    print(
        table("growth with nodes", header[:4], [row[:4] for row in format_cases(GROWTH_WITH_NODES, by_nodes, kernels)])
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory of this process so far: {peak:.0f} MB", flush=True)
    columns = ["whole sequences", "oms", "time", "beam", "time", "single steps", "time"]
    print(table("state moved by a sequence, share of all state", columns, measure_sequences()))
    for name, environment in (("numba", {}), ("numpy", {"ELASTIC_KERNEL": "numpy"})):
        seconds = time_first_plan(environment)
        spread = f"{duration(min(seconds))} to {duration(max(seconds))}"
        print(f"\nfirst plan of a fresh process ({name}): median {duration(float(np.median(seconds)))}, {spread}")
    target = RESULTS / "planning.png"
    draw(target, by_tasks, by_nodes)
    print(f"\nchart: {target.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
