"""The benefit of foresight: the state moved by baselines, `ssm`, one step, two steps and exact values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from elastic.experiments.paper003.contests import (
    EXACT,
    ONE_STEP,
    TWO_STEPS,
    Contender,
    Contest,
    baselines,
    captured_share,
    follow_policy,
)
from elastic.experiments.paper003.lab import Lab, total_partitions
from elastic.experiments.paper003.matrices import random_walk
from elastic.experiments.paper003.workloads import WORKLOADS
from elastic.experiments.results import Rows, format_number, format_table, group_by
from mdp import quality
from mdp.process import DecisionProcess

TWEETS = "tweets"
EVERY_LOG = f"{TWEETS}: all logs"


class ForesightRow(NamedTuple):
    """A policy in a case. Percentages are of all state, savings of what `ssm` moves, both with standard errors.

    `captured_percent` is the share of the saving of exact values that two steps save. A `reduced` instance has as many
    tasks as leave few enough partitions for exact values, and stands beside a whole one that has too many.
    """

    case: str
    tau: float
    instance: str
    tasks: int
    partitions: int
    policy: str
    moved_percent: float
    moved_standard_error: float
    saving_percent: float
    saving_standard_error: float
    captured_percent: float | None
    captured_standard_error: float | None
    observations: int
    migrations: int


class _Case(NamedTuple):
    """A decision process and the node counts that policies are evaluated on."""

    name: str
    process: DecisionProcess
    sequences: Sequence[Sequence[int]]
    block: int | None = None


def measure(lab: Lab) -> list[ForesightRow]:
    """For both taus: workloads with a random walk, then logs: learned on the first month, evaluated on the rest."""
    rows = []
    for tau in (lab.scale.tau, lab.scale.loose_tau):
        for case in _random_cases(lab, tau):
            for instance, smaller in _instances(lab, case):
                rows += _rows(smaller, instance, smaller.name, _hold_values(lab, smaller))
        contests: dict[str, list[tuple[_Case, Contest]]] = {}
        for case in _log_cases(lab, tau):
            for instance, smaller in _instances(lab, case):
                run = _hold_values(lab, smaller)
                contests.setdefault(instance, []).append((smaller, run))
                rows += _rows(smaller, instance, smaller.name, run)
        for instance, held_ones in contests.items():
            whole = Contest.concatenate([run for _, run in held_ones])
            rows += _rows(held_ones[0][0], instance, EVERY_LOG, whole)
    return rows


def _random_cases(lab: Lab, tau: float) -> Iterator[_Case]:
    matrix = random_walk(lab.scale.low, lab.scale.high, lab.seed)
    sequences = lab.sequences(matrix, lab.scale.quality_sequences)
    for kind in WORKLOADS:
        yield _Case(kind, lab.process(lab.workload(kind), matrix, tau), sequences)


def _log_cases(lab: Lab, tau: float) -> Iterator[_Case]:
    """One sequence per log, as recorded; its blocks stand in for sequences."""
    for log in lab.split_months:
        process = lab.process(lab.workload(), log.matrix, tau)
        yield _Case(f"{TWEETS}: {log.name}", process, [log.later], lab.scale.block)


def _instances(lab: Lab, case: _Case) -> Iterator[tuple[str, _Case]]:
    yield "whole", case
    if total_partitions(case.process) > lab.scale.most_exact_for_quality:
        yield "reduced", case._replace(process=quality.reduce_process(case.process, lab.scale.reduced_partitions))


def _hold_values(lab: Lab, case: _Case) -> Contest:
    count = total_partitions(case.process)
    lab.progress.step(f"{case.name}, tau {case.process.tau:g}, {case.process.tasks} tasks: {count:,} partitions")
    return lab.run_contest(_contenders(lab, case.process), case.sequences)


def _contenders(lab: Lab, process: DecisionProcess) -> Mapping[str, Contender]:
    made = lab.approximate(process)
    contenders = {
        **baselines(process.workload),
        **lab.ssm(process),
        ONE_STEP: follow_policy(process, made.one_step),
        TWO_STEPS: follow_policy(process, made.two_steps),
    }
    if total_partitions(process) <= lab.scale.most_exact_for_quality:
        contenders[EXACT] = follow_policy(process, lab.exact(process).policy)
    return contenders


def _rows(case: _Case, instance: str, name: str, contest: Contest) -> list[ForesightRow]:
    found = contest.comparison(case.block)
    share = captured_share(found) if EXACT in found.moved else None
    return [
        ForesightRow(
            name,
            case.process.tau,
            instance,
            case.process.tasks,
            total_partitions(case.process),
            policy,
            100 * found.mean(policy),
            100 * found.standard_error(policy),
            100 * found.gain(policy),
            100 * found.gain_standard_error(policy),
            100 * share.mean if share and policy == TWO_STEPS else None,
            100 * share.standard_error if share and policy == TWO_STEPS else None,
            len(means),
            contest.migrations,
        )
        for policy, means in found.moved.items()
    ]


def format_rows(rows: Rows) -> str:
    """One line per case; savings over `ssm` in per cent, with standard errors."""
    header = ["tau, case", "tasks", "even", "ring", "ssm", "one step", "two steps", "exact"]
    header += ["one saves, %", "two save, %", "exact saves, %", "captured, %"]
    lines = []
    for (tau, case, instance), policies in cases_of(rows).items():
        moved = [format_number(policies[name].moved_percent) if name in policies else "-" for name in _ORDER]
        saved = [
            format_number(policies[name].saving_percent, 1, policies[name].saving_standard_error)
            if name in policies
            else "-"
            for name in (ONE_STEP, TWO_STEPS, EXACT)
        ]
        two = policies[TWO_STEPS]
        lines.append(
            [
                f"{tau:.1f}  {case}" + (" (reduced)" if instance == "reduced" else ""),
                str(two.tasks),
                *moved,
                *saved,
                format_number(two.captured_percent, 0, two.captured_standard_error),
            ]
        )
    return format_table(header, lines)


_ORDER = ("even", "consistent-hash", "ssm", ONE_STEP, TWO_STEPS, EXACT)


def cases_of(rows: Rows) -> dict[tuple[float, str, str], dict[str, ForesightRow]]:
    return {
        (tau, case, instance): {row.policy: row for row in policies}
        for tau, of_tau in group_by(rows, "tau").items()
        for case, of_case in group_by(of_tau, "case").items()
        for instance, policies in group_by(of_case, "instance").items()
    }
