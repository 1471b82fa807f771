"""What foresight is worth: the state moved by baselines, `ssm`, one step, two steps and exact values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mdp import quality
from mdp.experiments.captured import captured
from mdp.experiments.contests import Contender, Contest, baselines, following
from mdp.experiments.lab import EXACT, ONE_STEP, TWO_STEPS, Lab, partitions_of
from mdp.experiments.matrices import random_walk
from mdp.experiments.outcome import Rows, by, number, table
from mdp.experiments.workloads import WORKLOADS
from mdp.process import DecisionProcess

TWEETS = "tweets"
EVERY_LOG = f"{TWEETS}: all logs"


class Row(NamedTuple):
    """A policy in a case. Percentages are of all state, savings of what `ssm` moves, both with standard errors.

    `captured_percent` is the share of the saving of exact values that two steps save. A `reduced` instance has as many
    tasks as leave few enough partitions for exact values, and is there because the whole one has too many.
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
    """A decision process and the node counts that policies are judged by."""

    name: str
    process: DecisionProcess
    sequences: Sequence[Sequence[int]]
    block: int | None = None


def measured(lab: Lab) -> list[Row]:
    """At both taus, the workloads with a walk, then the logs: learned on the first month, judged by what came after."""
    rows = []
    for tau in (lab.scale.tau, lab.scale.loose_tau):
        for case in _drawn(lab, tau):
            for instance, smaller in _instances(lab, case):
                rows += _rows(smaller, instance, smaller.name, _held(lab, smaller))
        contests: dict[str, list[tuple[_Case, Contest]]] = {}
        for case in _actual(lab, tau):
            for instance, smaller in _instances(lab, case):
                held = _held(lab, smaller)
                contests.setdefault(instance, []).append((smaller, held))
                rows += _rows(smaller, instance, smaller.name, held)
        for instance, held_ones in contests.items():
            whole = Contest.joined([held for _, held in held_ones])
            rows += _rows(held_ones[0][0], instance, EVERY_LOG, whole)
    return rows


def _drawn(lab: Lab, tau: float) -> Iterator[_Case]:
    matrix = random_walk(lab.scale.low, lab.scale.high, lab.seed)
    sequences = lab.sequences(matrix, lab.scale.quality_sequences)
    for kind in WORKLOADS:
        yield _Case(kind, lab.process(lab.workload(kind), matrix, tau), sequences)


def _actual(lab: Lab, tau: float) -> Iterator[_Case]:
    """Of every log one sequence, as it was; blocks of it stand in for sequences."""
    for log in lab.months:
        process = lab.process(lab.workload(), log.matrix, tau)
        yield _Case(f"{TWEETS}: {log.name}", process, [log.later], lab.scale.block)


def _instances(lab: Lab, case: _Case) -> Iterator[tuple[str, _Case]]:
    yield "whole", case
    if partitions_of(case.process) > lab.scale.most_exact_for_quality:
        yield "reduced", case._replace(process=quality.reduced(case.process, lab.scale.reduced_partitions))


def _held(lab: Lab, case: _Case) -> Contest:
    count = partitions_of(case.process)
    lab.progress.step(f"{case.name}, tau {case.process.tau:g}, {case.process.tasks} tasks: {count:,} partitions")
    return lab.contest(_contenders(lab, case.process), case.sequences)


def _contenders(lab: Lab, process: DecisionProcess) -> Mapping[str, Contender]:
    made = lab.approximate(process)
    contenders = {
        **baselines(process.workload),
        **lab.ssm(process),
        ONE_STEP: following(process, made.one_step),
        TWO_STEPS: following(process, made.two_steps),
    }
    if partitions_of(process) <= lab.scale.most_exact_for_quality:
        contenders[EXACT] = following(process, lab.exact(process).policy)
    return contenders


def _rows(case: _Case, instance: str, name: str, contest: Contest) -> list[Row]:
    found = contest.comparison(case.block)
    share = captured(found) if EXACT in found.moved else None
    return [
        Row(
            name,
            case.process.tau,
            instance,
            case.process.tasks,
            partitions_of(case.process),
            policy,
            100 * found.mean(policy),
            100 * found.spread(policy),
            100 * found.gain(policy),
            100 * found.gain_spread(policy),
            100 * share.mean if share and policy == TWO_STEPS else None,
            100 * share.spread if share and policy == TWO_STEPS else None,
            len(means),
            contest.migrations,
        )
        for policy, means in found.moved.items()
    ]


def shown(rows: Rows) -> str:
    """One line a case; savings over `ssm` in per cent, with standard errors."""
    header = ["tau, case", "tasks", "even", "ring", "ssm", "one step", "two steps", "exact"]
    header += ["one saves, %", "two save, %", "exact saves, %", "captured, %"]
    lines = []
    for (tau, case, instance), policies in cases_of(rows).items():
        moved = [number(policies[name].moved_percent) if name in policies else "-" for name in _ORDER]
        saved = [
            number(policies[name].saving_percent, 1, policies[name].saving_standard_error) if name in policies else "-"
            for name in (ONE_STEP, TWO_STEPS, EXACT)
        ]
        two = policies[TWO_STEPS]
        lines.append(
            [
                f"{tau:.1f}  {case}" + (" (reduced)" if instance == "reduced" else ""),
                str(two.tasks),
                *moved,
                *saved,
                number(two.captured_percent, 0, two.captured_standard_error),
            ]
        )
    return table(header, lines)


_ORDER = ("even", "consistent-hash", "ssm", ONE_STEP, TWO_STEPS, EXACT)


def cases_of(rows: Rows) -> dict[tuple[float, str, str], dict[str, Row]]:
    return {
        (tau, case, instance): {row.policy: row for row in policies}
        for tau, of_tau in by(rows, "tau").items()
        for case, of_case in by(of_tau, "case").items()
        for instance, policies in by(of_case, "instance").items()
    }
