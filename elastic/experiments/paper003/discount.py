"""Figure 14 of paper 003: state moved by a migration, and seconds of a projection, against gamma."""

from typing import NamedTuple

from elastic.experiments.paper003.contests import SSM, follow_policy
from elastic.experiments.paper003.lab import Lab, total_partitions
from elastic.experiments.paper003.migration_cost import MTM
from elastic.experiments.results import Rows, format_number, format_table


class DiscountRow(NamedTuple):
    """MTM-aware planning with one gamma. With gamma 0 it is single-step planning, up to ties."""

    gamma: float
    method: str
    partitions: int
    seconds: float
    sweeps: int | None
    proven_error_percent: float | None
    moved_percent: float
    moved_standard_error: float
    ssm_moved_percent: float
    ssm_moved_standard_error: float
    saving_percent: float
    saving_standard_error: float


def measure(lab: Lab) -> list[DiscountRow]:
    """At the default tau, on sequences common to all gammas; exact where there are few enough partitions."""
    rows, sequences = [], lab.sequences(lab.matrix)
    for gamma in lab.scale.gammas:
        process = lab.process(lab.workload(), lab.matrix, gamma=gamma)
        count = total_partitions(process)
        lab.progress.step(f"gamma {gamma:g}: {count:,} partitions")
        made = lab.mtm_aware(process)
        contenders = {**lab.ssm(process), MTM: follow_policy(process, made.policy)}
        found = lab.run_contest(contenders, sequences).comparison()
        rows.append(
            DiscountRow(
                gamma,
                made.method,
                count,
                made.seconds,
                made.sweeps,
                None if made.error is None else 100 * made.error,
                100 * found.mean(MTM),
                100 * found.standard_error(MTM),
                100 * found.mean(SSM),
                100 * found.standard_error(SSM),
                100 * found.gain(MTM),
                100 * found.gain_standard_error(MTM),
            )
        )
    return rows


def format_rows(rows: Rows) -> str:
    header = ["gamma", "moved, %", "less than ssm, %", "seconds", "sweeps", "proven error, %", "how"]
    lines = [
        [
            f"{row.gamma:.2f}",
            format_number(row.moved_percent, 2, row.moved_standard_error),
            format_number(row.saving_percent, 1, row.saving_standard_error),
            format_number(row.seconds, 1),
            format_number(row.sweeps, 0),
            format_number(row.proven_error_percent),
            row.method,
        ]
        for row in rows
    ]
    return format_table(header, lines)
