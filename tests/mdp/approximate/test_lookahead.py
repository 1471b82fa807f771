"""Two steps of foresight, in the planner and as a policy."""

import pickle

import numpy as np
import pytest

from mdp import reference
from mdp.approximate import Foresight, Lookahead
from mdp.process import DecisionProcess
from mdp.simulate import rightmost_partition
from migration import Assignment, plan
from tests.mdp.approximate.test_kernels import random_value
from tests.mdp.instances import skewed, walk

PROCESS = DecisionProcess(skewed(24, seed=3), walk(3, 6), tau=0.3)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("candidates", [1, 5, 20])
def test_the_policy_chooses_as_well_as_the_planner(seed: int, candidates: int) -> None:
    lookahead = Lookahead(PROCESS, random_value(PROCESS, seed), candidates)
    for now in PROCESS.nodes:
        old = rightmost_partition(PROCESS, now)
        current = Assignment(Assignment.even(24, now).nodes, old.tolist())
        for after in PROCESS.nodes:
            made = plan(current, after, PROCESS.workload, 0.3, "mtm", value=lookahead)
            chosen = tuple(lookahead(old, after).tolist())
            cost = reference.migration_costs([current.boundaries], [chosen], PROCESS.workload)[0, 0]
            assert made.future_cost is not None
            # Two targets may be equally good, so it is not the targets that are compared.
            assert made.cost + made.future_cost == pytest.approx(cost + 0.8 * lookahead.value(chosen))
            assert ("nothing moves" in made.reason) == (now == after)


def test_with_all_targets_as_candidates_it_minimises_cost_and_backup() -> None:
    value = random_value(PROCESS, 3)
    lookahead, old = Lookahead(PROCESS, value, candidates=100_000), rightmost_partition(PROCESS, 4)
    targets = reference.all_partitions(PROCESS)[6]
    costs = reference.migration_costs([tuple(old.tolist())], targets, PROCESS.workload)[0]
    scores = costs + 0.8 * np.array([lookahead.value(target) for target in targets])
    assert tuple(lookahead(old, 6).tolist()) == targets[int(np.argmin(scores))]


def test_one_candidate_is_one_step() -> None:
    value = random_value(PROCESS, 3)
    old = rightmost_partition(PROCESS, 4)
    assert Lookahead(PROCESS, value, 1)(old, 6).tolist() == Foresight(PROCESS, value)(old, 6).tolist()


def test_policies_can_be_sent_to_other_processes() -> None:
    lookahead = Lookahead(PROCESS, random_value(PROCESS, 3))
    old = rightmost_partition(PROCESS, 4)
    for policy in (lookahead, Foresight(PROCESS, lookahead.additive)):
        other = pickle.loads(pickle.dumps(policy))  # noqa: S301
        assert other(old, 6).tolist() == policy(old, 6).tolist()
