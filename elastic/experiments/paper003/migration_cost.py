"""Figure 9 of paper 003: the state that a migration moves, against tau, for four strategies."""

from typing import NamedTuple

from elastic.experiments.paper003.contests import SSM, Contest, baselines, follow_policy
from elastic.experiments.paper003.lab import Lab, total_partitions
from elastic.experiments.results import Rows, format_number, format_table
from mdp.process import DecisionProcess

MTM = "mtm-aware"


class MigrationCostRow(NamedTuple):
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


def measure(lab: Lab) -> list[MigrationCostRow]:
    """Measure all strategies and all tau on the same sequences.

    MTM-aware planning uses exact values if there are few enough partitions, else two steps of foresight. Even split and
    consistent hashing do not depend on tau: they run once, and are compared with every cap.
    """
    workload, sequences = lab.workload(), lab.sequences(lab.matrix)
    lab.progress.step("even split and consistent hashing")
    common = lab.run_contest(baselines(workload), sequences)
    rows = []
    for tau in lab.scale.taus:
        process = lab.process(workload, lab.matrix, tau)
        lab.progress.step(f"tau {tau:g}: {total_partitions(process):,} partitions")
        made = lab.mtm_aware(process)
        contenders = {**lab.ssm(process), MTM: follow_policy(process, made.policy)}
        rows += _rows(process, made.method, common.merge(lab.run_contest(contenders, sequences)))
    return rows


def _rows(process: DecisionProcess, method: str, contest: Contest) -> list[MigrationCostRow]:
    found = contest.comparison()
    return [
        MigrationCostRow(
            process.tau,
            strategy,
            method if strategy == MTM else "",
            total_partitions(process),
            100 * found.mean(strategy),
            100 * found.standard_error(strategy),
            100 * found.gain(strategy),
            100 * found.gain_standard_error(strategy),
            contest.heaviest(strategy),
            100 * contest.above_cap(strategy, process.tau),
            len(contest.traces[strategy]),
            contest.migrations,
        )
        for strategy in contest.traces
    ]


def format_rows(rows: Rows) -> str:
    header = ["tau, strategy", "moved, %", "less than ssm, %", "heaviest / mean", "above cap, %", "how"]
    lines = [
        [
            f"{row.tau:.2f}  {row.strategy}",
            format_number(row.moved_percent, 2, row.moved_standard_error),
            "" if row.strategy == SSM else format_number(row.saving_percent, 1, row.saving_standard_error),
            format_number(row.heaviest_over_mean),
            format_number(row.above_cap_percent, 0),
            row.method,
        ]
        for row in rows
    ]
    return format_table(header, lines)
