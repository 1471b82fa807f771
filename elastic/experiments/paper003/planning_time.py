"""Figures 10 and 12 of paper 003: time of a plan of `ssm`, against tau and against the number of tasks."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from elastic.experiments.paper003.contests import SSM
from elastic.experiments.paper003.lab import Lab
from elastic.experiments.results import Rows, format_number, format_table
from elastic.experiments.timing import time_calls
from mdp.approximate import Foresight
from mdp.process import DecisionProcess
from mdp.simulate import rightmost_partition, walk
from migration import Assignment, plan
from migration.planning.search import best_partition

_QUESTIONS = 50  # migrations along one sequence, each timed repeatedly


class PlanningTimeRow(NamedTuple):
    """Microseconds per plan: the whole call, and its dynamic program; medians, and 10th and 90th percentiles.

    `relaxed_percent` of the migrations lead to a node count without balanced partition: their caps are relaxed, which
    takes time of its own, `relaxed_call_us`, and is not in the others. `moved_percent` is of all state, a migration.
    """

    tau: float
    tasks: int
    call_us: float
    call_p10_us: float
    call_p90_us: float
    kernel_us: float
    kernel_p10_us: float
    kernel_p90_us: float
    calls: int
    relaxed_percent: float
    relaxed_call_us: float | None
    moved_percent: float
    moved_standard_error: float


def measure_by_tau(lab: Lab) -> list[PlanningTimeRow]:
    return [_measure(lab, lab.scale.tasks, tau) for tau in lab.scale.taus]


def measure_by_tasks(lab: Lab) -> list[PlanningTimeRow]:
    return [_measure(lab, tasks, lab.scale.tau) for tasks in lab.scale.sizes]


def _measure(lab: Lab, tasks: int, tau: float) -> PlanningTimeRow:
    process = lab.process(lab.workload(tasks=tasks), lab.matrix, tau)
    lab.progress.step(f"{tasks:,} tasks, tau {tau:g}")
    sequences = lab.sequences(lab.matrix)
    questions = _questions(process, sequences[0][: _QUESTIONS + 1])
    seconds, relaxed = lab.scale.timing_seconds, [question for question in questions if question.relaxed]
    others = [question for question in questions if not question.relaxed] or relaxed
    calls = time_calls([question.call for question in others], seconds)
    kernels = time_calls([question.kernel for question in others], seconds)
    found = lab.run_contest(lab.ssm(process), sequences).comparison()
    return PlanningTimeRow(
        tau,
        tasks,
        *calls[:3],
        *kernels[:3],
        calls.calls + kernels.calls,
        100 * len(relaxed) / len(questions),
        time_calls([question.call for question in relaxed], seconds).median if relaxed else None,
        100 * found.mean(SSM),
        100 * found.standard_error(SSM),
    )


class _Question(NamedTuple):
    call: Callable[[], object]
    kernel: Callable[[], object]
    relaxed: bool


def _questions(process: DecisionProcess, node_counts: list[int]) -> list[_Question]:
    """The migrations of `ssm` along a sequence of node counts, as calls to time."""
    workload, old, found = process.workload, rightmost_partition(process, node_counts[0]), []
    for chosen, _ in walk(process, Foresight(process), node_counts):
        nodes = len(chosen) - 1
        current = Assignment.even(process.tasks, len(old) - 1)
        current = Assignment(current.nodes, tuple(old.tolist()))
        call = partial(plan, current, nodes, workload, process.tau, relax=True)
        kernel = partial(
            best_partition, workload.work_prefix, workload.state_prefix, process.first[nodes], old.copy(), nodes
        )
        found.append(_Question(call, kernel, call().relaxed))
        old = chosen
    return found


def format_rows(rows: Rows) -> str:
    header = ["tau, tasks", "a plan, us", "10 % to 90 %", "kernel, us", "10 % to 90 %", "moved, %"]
    header += ["relaxed, %", "relaxing plan, us"]
    lines = [
        [
            f"{row.tau:.2f}  {row.tasks:,}",
            format_number(row.call_us, 1),
            f"{row.call_p10_us:,.1f} to {row.call_p90_us:,.1f}",
            format_number(row.kernel_us, 1),
            f"{row.kernel_p10_us:,.1f} to {row.kernel_p90_us:,.1f}",
            format_number(row.moved_percent, 2, row.moved_standard_error),
            format_number(row.relaxed_percent, 0),
            format_number(row.relaxed_call_us, 0),
        ]
        for row in rows
    ]
    return format_table(header, lines)
