"""Figure 9 of paper 003: the state that a migration moves, against tau, for four ways to plan it."""

from typing import NamedTuple

from mdp.experiments.contests import SSM, Contest, baselines, following
from mdp.experiments.lab import Lab, partitions_of
from mdp.experiments.outcome import Rows, number, table
from mdp.process import DecisionProcess

MTM = "mtm-aware"


class Row(NamedTuple):
    """A strategy at a tau. Percentages are of all state, savings of what `ssm` moves, both with standard errors."""

    tau: float
    strategy: str
    method: str
    partitions: int
    moved_percent: float
    moved_standard_error: float
    saving_percent: float
    saving_standard_error: float
    heaviest_over_mean: float
    above_cap_percent: float
    sequences: int
    migrations: int


def measured(lab: Lab) -> list[Row]:
    """On sequences common to all strategies and all tau.

    MTM-aware planning is exact where there are few enough partitions, and looks two steps ahead elsewhere. Even split
    and consistent hashing do not look at tau: they are walked once, and judged by every cap.
    """
    workload, sequences = lab.workload(), lab.sequences(lab.matrix)
    lab.progress.step("even split and consistent hashing")
    common = lab.contest(baselines(workload), sequences)
    rows = []
    for tau in lab.scale.taus:
        process = lab.process(workload, lab.matrix, tau)
        lab.progress.step(f"tau {tau:g}: {partitions_of(process):,} partitions")
        made = lab.mtm_aware(process)
        contenders = {**lab.ssm(process), MTM: following(process, made.policy)}
        rows += _rows(process, made.method, common.with_others(lab.contest(contenders, sequences)))
    return rows


def _rows(process: DecisionProcess, method: str, contest: Contest) -> list[Row]:
    found = contest.comparison()
    return [
        Row(
            process.tau,
            strategy,
            method if strategy == MTM else "",
            partitions_of(process),
            100 * found.mean(strategy),
            100 * found.spread(strategy),
            100 * found.gain(strategy),
            100 * found.gain_spread(strategy),
            contest.heaviest(strategy),
            100 * contest.above_cap(strategy, process.tau),
            len(contest.traces[strategy]),
            contest.migrations,
        )
        for strategy in contest.traces
    ]


def shown(rows: Rows) -> str:
    header = ["tau, strategy", "moved, %", "less than ssm, %", "heaviest / mean", "above cap, %", "how"]
    lines = [
        [
            f"{row.tau:.2f}  {row.strategy}",
            number(row.moved_percent, 2, row.moved_standard_error),
            "" if row.strategy == SSM else number(row.saving_percent, 1, row.saving_standard_error),
            number(row.heaviest_over_mean),
            number(row.above_cap_percent, 0),
            row.method,
        ]
        for row in rows
    ]
    return table(header, lines)
