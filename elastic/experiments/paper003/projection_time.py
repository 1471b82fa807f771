"""Figure 11 of paper 003: time of a projection, against tau, and the quality of the result."""

from typing import NamedTuple

from elastic.experiments.paper003.contests import EXACT, TWO_STEPS, captured_share, follow_policy
from elastic.experiments.paper003.lab import Lab, total_partitions
from elastic.experiments.results import Rows, format_number, format_table
from mdp import quality
from mdp.process import DecisionProcess

APPROXIMATE = "approximate"


class ProjectionTimeRow(NamedTuple):
    """A projection at a tau, by one method.

    An exact one has a proven error, in per cent of all state. An approximate one has a measured quality: the share of
    the saving of exact values over `ssm` that its policy with two steps of foresight saves, on the instance itself
    where that has exact values, else on the same one with `judged_on_tasks` tasks.
    """

    tau: float
    method: str
    partitions: int
    seconds: float
    sweeps: int | None
    proven_error_percent: float | None
    captured_percent: float | None
    captured_standard_error: float | None
    judged_on_tasks: int | None
    saving_percent: float
    saving_standard_error: float


def measure(lab: Lab) -> list[ProjectionTimeRow]:
    """Approximate for all tau, exact where there are few enough partitions; in threads of this process."""
    rows = []
    for tau in lab.scale.taus:
        process = lab.process(lab.workload(), lab.matrix, tau)
        lab.progress.step(f"tau {tau:g}: {total_partitions(process):,} partitions")
        feasible = total_partitions(process) <= lab.scale.most_exact
        if feasible:
            rows.append(_exact(lab, process))
        judged = process if feasible else quality.reduce_process(process, lab.scale.reduced_partitions)
        rows.append(_approximate(lab, process, judged))
    return rows


def _exact(lab: Lab, process: DecisionProcess) -> ProjectionTimeRow:
    made = lab.exact(process)
    contenders = {**lab.ssm(process), EXACT: follow_policy(process, made.policy)}
    found = lab.run_contest(contenders, lab.sequences(lab.matrix)).comparison()
    return ProjectionTimeRow(
        process.tau,
        EXACT,
        total_partitions(process),
        made.seconds,
        made.sweeps,
        100 * made.error,
        None,
        None,
        None,
        100 * found.gain(EXACT),
        100 * found.gain_standard_error(EXACT),
    )


def _approximate(lab: Lab, process: DecisionProcess, judged: DecisionProcess) -> ProjectionTimeRow:
    made = lab.approximate(process)
    contenders = {**lab.ssm(process), TWO_STEPS: follow_policy(process, made.two_steps)}
    found = lab.run_contest(contenders, lab.sequences(lab.matrix)).comparison()
    smaller = {
        **lab.ssm(judged),
        TWO_STEPS: follow_policy(judged, lab.approximate(judged).two_steps),
        EXACT: follow_policy(judged, lab.exact(judged).policy),
    }
    many = lab.sequences(lab.matrix, lab.scale.quality_sequences)
    share = captured_share(lab.run_contest(smaller, many).comparison())
    return ProjectionTimeRow(
        process.tau,
        APPROXIMATE,
        total_partitions(process),
        made.seconds,
        None,
        None,
        share and 100 * share.mean,
        share and 100 * share.standard_error,
        judged.tasks,
        100 * found.gain(TWO_STEPS),
        100 * found.gain_standard_error(TWO_STEPS),
    )


def format_rows(rows: Rows) -> str:
    header = ["tau, method", "partitions", "seconds", "proven error, %", "captured, %", "judged on", "less than ssm, %"]
    lines = [
        [
            f"{row.tau:.2f}  {row.method}",
            f"{row.partitions:,}",
            format_number(row.seconds, 1),
            format_number(row.proven_error_percent),
            format_number(row.captured_percent, 0, row.captured_standard_error),
            "-" if row.judged_on_tasks is None else f"{row.judged_on_tasks} tasks",
            format_number(row.saving_percent, 1, row.saving_standard_error),
        ]
        for row in rows
    ]
    return format_table(header, lines)
