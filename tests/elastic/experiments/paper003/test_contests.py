"""Contenders on common sequences."""

from typing import Any

import numpy as np
import pytest

from elastic.experiments.paper003 import ExperimentScale, Lab
from elastic.experiments.paper003.contests import (
    EVEN,
    EXACT,
    RING,
    SSM,
    TWO_STEPS,
    Contest,
    Trace,
    baselines,
    captured_share,
    follow_policy,
)
from elastic.experiments.paper003.matrices import random_walk
from elastic.experiments.paper003.scale import Training
from elastic.experiments.paper003.workloads import log_normal
from mdp.approximate import Foresight
from mdp.process import DecisionProcess
from mdp.simulate import Comparison, simulate, walk
from migration import Assignment, plan
from tests.mdp.instances import skewed
from tests.mdp.instances import walk as walk_matrix

SMALL = ExperimentScale(
    tasks=32, low=4, high=8, sequences=6, migrations=40, training=Training(rounds=1, samples=60, sequences=4)
)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab({}, SMALL, seed=1)


def test_ssm_moves_less_than_consistent_hashing_and_that_less_than_an_even_split(lab: Lab) -> None:
    workload, matrix = log_normal(32, 1), random_walk(4, 8, 1)
    process = lab.process(workload, matrix, tau=0.3)
    found = lab.run_contest({**baselines(workload), **lab.ssm(process)}, lab.sequences(matrix)).comparison()
    assert found.mean(SSM) < found.mean(RING) < found.mean(EVEN)


def test_a_policy_moves_what_its_walk_moves_and_keeps_the_cap() -> None:
    process = DecisionProcess(skewed(32, seed=3), walk_matrix(3, 6), tau=0.3)
    counts = [4, 6, 3, 5, 4]
    trace = follow_policy(process, Foresight(process))(counts, 0)
    moved = simulate(process, Foresight(process), counts) / process.workload.total_state
    assert trace.moved == pytest.approx(moved)
    assert len(trace.heaviest) == 4
    assert (trace.heaviest <= 1.3 * (1 + 1e-9)).all()
    assert Contest({SSM: [trace]}).above_cap(SSM, 0.3) == 0


@pytest.mark.parametrize("strategy", [EVEN, RING])
def test_a_baseline_goes_on_from_what_it_decided_itself(strategy: str) -> None:
    workload, counts = skewed(32, seed=3), [4, 6, 3, 5]
    options: dict[str, Any] = {"seed": 7} if strategy == RING else {}
    now = plan(Assignment.even(32, 4), 4, workload, strategy=strategy, **options).target
    costs, heaviest = [], []
    for nodes in counts[1:]:
        made = plan(now, nodes, workload, strategy=strategy, **options)
        costs.append(made.cost / workload.total_state)
        heaviest.append(made.heaviest.work / (workload.total_work / nodes))
        now = made.target
    trace = baselines(workload)[strategy](counts, 7)
    assert trace.moved == pytest.approx(costs)
    assert trace.heaviest == pytest.approx(heaviest)


def test_with_gamma_0_every_step_of_exact_planning_costs_what_ssm_costs(lab: Lab) -> None:
    process = lab.process(log_normal(24, 2), random_walk(3, 6, 2), tau=0.3, gamma=0.0)
    ssm, state = Foresight(process), process.workload.state_prefix
    counts = lab.sequences(process.matrix)[0]
    before = None
    for nodes, (chosen, moved) in zip(counts[1:], walk(process, lab.exact(process).policy, counts), strict=True):
        if before is not None:
            _, stays = ssm.targets(before[None, :], nodes)
            assert moved == pytest.approx(state[-1] - stays[0])
        before = chosen


def test_with_gamma_0_approximate_planning_is_ssm(lab: Lab) -> None:
    process = lab.process(log_normal(24, 2), random_walk(3, 6, 2), tau=0.3, gamma=0.0)
    policies = {"one": follow_policy(process, lab.approximate(process).one_step), **lab.ssm(process)}
    found = lab.run_contest(policies, lab.sequences(process.matrix)).comparison()
    assert found.moved["one"] == pytest.approx(found.moved[SSM])


def test_a_projection_is_made_once(lab: Lab) -> None:
    def process() -> DecisionProcess:
        return lab.process(log_normal(24, 2), random_walk(3, 6, 2), tau=0.3, gamma=0.5)

    assert lab.approximate(process()) is lab.approximate(process())
    assert lab.exact(process()) is lab.exact(process())


def test_blocks_are_means_of_consecutive_migrations() -> None:
    contest = Contest({SSM: [Trace(np.arange(10.0), np.ones(10))]})
    assert contest.comparison(5).moved[SSM].tolist() == [2.0, 7.0]
    assert contest.comparison().moved[SSM].tolist() == [4.5]
    assert Contest.concatenate([contest, contest]).migrations == 20


def test_what_two_steps_capture_is_a_ratio_of_means() -> None:
    ssm = np.array([0.10, 0.12, 0.14])
    found = Comparison({SSM: ssm, TWO_STEPS: ssm - [0.01, 0.02, 0.01], EXACT: ssm - 0.02})
    share = captured_share(found)
    assert share is not None
    assert share.mean == pytest.approx(2 / 3)
    assert share.standard_error == pytest.approx(
        np.std([0.5, 1.0, 0.5], ddof=1) / np.sqrt(3)
    )  # all parts weigh alike here


def test_where_exact_values_save_nothing_there_is_nothing_to_capture() -> None:
    ssm = np.array([0.1, 0.2])
    assert captured_share(Comparison({SSM: ssm, TWO_STEPS: ssm, EXACT: ssm})) is None
