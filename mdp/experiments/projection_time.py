"""Figure 11 of paper 003: how long it takes to project migration costs, against tau, and how good the result is."""

from typing import NamedTuple

from mdp import quality
from mdp.experiments.captured import captured
from mdp.experiments.contests import following
from mdp.experiments.lab import EXACT, TWO_STEPS, Lab, partitions_of
from mdp.experiments.outcome import Rows, number, table
from mdp.process import DecisionProcess

APPROXIMATE = "approximate"


class Row(NamedTuple):
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


def measured(lab: Lab) -> list[Row]:
    """Approximate everywhere, exact where there are few enough partitions; in threads of this process."""
    rows = []
    for tau in lab.scale.taus:
        process = lab.process(lab.workload(), lab.matrix, tau)
        lab.progress.step(f"tau {tau:g}: {partitions_of(process):,} partitions")
        feasible = partitions_of(process) <= lab.scale.most_exact
        if feasible:
            rows.append(_exact(lab, process))
        judged = process if feasible else quality.reduced(process, lab.scale.reduced_partitions)
        rows.append(_approximate(lab, process, judged))
    return rows


def _exact(lab: Lab, process: DecisionProcess) -> Row:
    made = lab.exact(process)
    contenders = {**lab.ssm(process), EXACT: following(process, made.policy)}
    found = lab.contest(contenders, lab.sequences(lab.matrix)).comparison()
    return Row(
        process.tau,
        EXACT,
        partitions_of(process),
        made.seconds,
        made.sweeps,
        100 * made.error,
        None,
        None,
        None,
        100 * found.gain(EXACT),
        100 * found.gain_spread(EXACT),
    )


def _approximate(lab: Lab, process: DecisionProcess, judged: DecisionProcess) -> Row:
    made = lab.approximate(process)
    contenders = {**lab.ssm(process), TWO_STEPS: following(process, made.two_steps)}
    found = lab.contest(contenders, lab.sequences(lab.matrix)).comparison()
    smaller = {
        **lab.ssm(judged),
        TWO_STEPS: following(judged, lab.approximate(judged).two_steps),
        EXACT: following(judged, lab.exact(judged).policy),
    }
    many = lab.sequences(lab.matrix, lab.scale.quality_sequences)
    share = captured(lab.contest(smaller, many).comparison())
    return Row(
        process.tau,
        APPROXIMATE,
        partitions_of(process),
        made.seconds,
        None,
        None,
        share and 100 * share.mean,
        share and 100 * share.spread,
        judged.tasks,
        100 * found.gain(TWO_STEPS),
        100 * found.gain_spread(TWO_STEPS),
    )


def shown(rows: Rows) -> str:
    header = ["tau, method", "partitions", "seconds", "proven error, %", "captured, %", "judged on", "less than ssm, %"]
    lines = [
        [
            f"{row.tau:.2f}  {row.method}",
            f"{row.partitions:,}",
            number(row.seconds, 1),
            number(row.proven_error_percent),
            number(row.captured_percent, 0, row.captured_standard_error),
            "-" if row.judged_on_tasks is None else f"{row.judged_on_tasks} tasks",
            number(row.saving_percent, 1, row.saving_standard_error),
        ]
        for row in rows
    ]
    return table(header, lines)
