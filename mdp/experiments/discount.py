"""Figure 14 of paper 003: what a migration moves, and how long it takes to project costs, against gamma."""

from typing import NamedTuple

from mdp.experiments.contests import SSM, following
from mdp.experiments.lab import Lab, partitions_of
from mdp.experiments.migration_cost import MTM
from mdp.experiments.outcome import Rows, number, table


class Row(NamedTuple):
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


def measured(lab: Lab) -> list[Row]:
    """At the default tau, on sequences common to all gammas; exact where there are few enough partitions."""
    rows, sequences = [], lab.sequences(lab.matrix)
    for gamma in lab.scale.gammas:
        process = lab.process(lab.workload(), lab.matrix, gamma=gamma)
        count = partitions_of(process)
        lab.progress.step(f"gamma {gamma:g}: {count:,} partitions")
        made = lab.mtm_aware(process)
        contenders = {**lab.ssm(process), MTM: following(process, made.policy)}
        found = lab.contest(contenders, sequences).comparison()
        rows.append(
            Row(
                gamma,
                made.method,
                count,
                made.seconds,
                made.sweeps,
                None if made.error is None else 100 * made.error,
                100 * found.mean(MTM),
                100 * found.spread(MTM),
                100 * found.mean(SSM),
                100 * found.spread(SSM),
                100 * found.gain(MTM),
                100 * found.gain_spread(MTM),
            )
        )
    return rows


def shown(rows: Rows) -> str:
    header = ["gamma", "moved, %", "less than ssm, %", "seconds", "sweeps", "proven error, %", "how"]
    lines = [
        [
            f"{row.gamma:.2f}",
            number(row.moved_percent, 2, row.moved_standard_error),
            number(row.saving_percent, 1, row.saving_standard_error),
            number(row.seconds, 1),
            number(row.sweeps, 0),
            number(row.proven_error_percent),
            row.method,
        ]
        for row in rows
    ]
    return table(header, lines)
