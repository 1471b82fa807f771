"""Training, against exact values on small instances."""

import json

import numpy as np
import pytest

from mdp import reference
from mdp.approximate import AdditiveProjection, Foresight, train
from mdp.approximate.projection import ONE_STEP, TWO_STEPS
from mdp.errors import InvalidProjection, InvalidTable
from mdp.lattice import Lattice
from mdp.matrix import TransitionMatrix
from mdp.process import DecisionProcess
from mdp.progress import TrainingProgress
from mdp.simulate import Comparison, Policy
from mdp.workers import LocalWorkers
from migration import Assignment, Workload, plan
from tests.mdp.instances import edge_numbers, skewed, walk

SMALL = DecisionProcess(skewed(12, seed=3), walk(2, 5), tau=0.5)


def quickly(process: DecisionProcess, **options: object) -> AdditiveProjection:
    return train(process, **{"sequences": 4, **options})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def projection() -> AdditiveProjection:
    return quickly(SMALL)


def cost_of(process: DecisionProcess, policy: Policy) -> float:
    """The discounted cost of following a policy for ever, the mean over all balanced partitions."""
    partitions = reference.all_partitions(process)
    place = {row: index for index, row in enumerate(row for rows in partitions.values() for row in rows)}
    moved, leads = np.zeros(len(place)), np.zeros((len(place), len(place)))
    for now, rows in partitions.items():
        for row in rows:
            for after in process.nodes:
                chance, chosen = process.matrix.probability(now, after), tuple(policy(np.array(row), after).tolist())
                moved[place[row]] += chance * reference.migration_costs([row], [chosen], process.workload)[0, 0]
                leads[place[row], place[chosen]] += chance
    return float(np.linalg.solve(np.eye(len(place)) - process.gamma * leads, moved).mean())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_on_small_instances_it_is_nearly_as_good_as_exact_values(seed: int) -> None:
    process = DecisionProcess(skewed(12, seed), walk(2, 5), tau=0.5)
    exact = np.mean([value for values in reference.projected_costs(process).values() for value in values.values()])
    learned = quickly(process)
    alone = cost_of(process, Foresight(process))
    one, two = cost_of(process, Foresight(process, learned.additive)), cost_of(process, learned.lookahead())
    assert exact - 1e-6 <= min(one, two)
    assert alone - one > 0.8 * (alone - exact)
    assert alone - two > 0.9 * (alone - exact)


def test_values_are_near_the_exact_ones(projection: AdditiveProjection) -> None:
    for values in reference.projected_costs(SMALL).values():
        exact, learned = np.array(list(values.values())), np.array([projection.value(row) for row in values])
        assert learned.mean() == pytest.approx(exact.mean(), rel=0.05)
        if len(values) > 10:
            assert np.corrcoef(exact, learned)[0, 1] > 0.9


def test_without_weight_on_the_future_values_are_the_expected_cost_of_one_step() -> None:
    process = DecisionProcess(skewed(12, seed=3), walk(2, 5), tau=0.5, gamma=0.0)
    learned = quickly(process, rounds=1)
    for nodes, values in reference.projected_costs(process).items():
        exact = np.array(list(values.values()))
        assert [learned.lookahead().value(row) for row in values] == pytest.approx(exact)
        assert learned.additive.by_nodes[nodes].constant == pytest.approx(exact.mean())


def test_without_weight_on_the_future_plans_cost_what_ssm_costs() -> None:
    process = DecisionProcess(skewed(24, seed=3), walk(3, 6), tau=0.3, gamma=0.0)
    learned = quickly(process, rounds=1)
    assert learned.gain_over_ssm == pytest.approx(0)
    for nodes in (3, 5, 6):
        current, options = Assignment.even(24, 4), {"tau": 0.3, "strategy": "mtm"}
        alone = plan(current, nodes, process.workload, 0.3).cost
        for value in (learned, learned.lookahead()):
            made = plan(current, nodes, process.workload, value=value, **options)  # type: ignore[arg-type]
            assert made.cost == pytest.approx(alone)


def test_the_same_seed_gives_the_same_values_with_any_workers() -> None:
    process = DecisionProcess(skewed(24, seed=3), walk(3, 6), tau=0.3)
    one, other, third = (
        quickly(process, samples=60, rounds=2, seed=seed, workers=LocalWorkers(threads)).to_parts()
        for seed, threads in [(5, 1), (5, 3), (6, 1)]
    )
    assert one[1] == other[1]
    assert all((one[0][name] == other[0][name]).all() for name in one[0])
    assert one[1] != third[1]


@pytest.mark.parametrize("terms", ["boundary", "interval", "both"])
def test_every_kind_of_terms_saves_state_and_survives_being_saved(terms: str) -> None:
    process = DecisionProcess(skewed(32, seed=3), walk(4, 7), tau=0.3)
    learned = train(process, terms=terms, samples=60, sequences=6, rounds=2)
    assert learned.gain_over_ssm > 0
    assert learned.comparison.gain(TWO_STEPS) > 0
    arrays, facts = learned.to_parts()
    again = AdditiveProjection.from_parts(process, arrays, json.loads(json.dumps(facts)))
    assert again.terms == terms
    assert again.gain_over_ssm == learned.gain_over_ssm
    for nodes in process.nodes:
        row = Foresight(process)(np.array([0, 32]), nodes).tolist()
        assert again.value(row) == learned.value(row)
        assert (again.guide(nodes).terms.interval is None) == (terms == "boundary")
    del arrays["boundary-5"]
    with pytest.raises(InvalidTable, match="boundary-5"):
        AdditiveProjection.from_parts(process, arrays, facts)


def test_the_planner_takes_it_as_a_value_function(projection: AdditiveProjection) -> None:
    made = plan(Assignment.even(12, 3), 4, SMALL.workload, 0.5, "mtm", value=projection)
    assert made.future_cost == pytest.approx(0.8 * projection.value([*made.target.boundaries]))  # type: ignore[attr-defined]
    assert "exactly" in made.reason
    elsewhere = plan(Assignment.even(12, 3), 6, SMALL.workload, 0.5, "mtm", value=projection)
    assert "without foresight: the value function knows 2, 3, 4, 5 nodes, not 6" in elsewhere.reason


def test_values_that_are_worse_than_ssm_say_so_and_ssm_plans(projection: AdditiveProjection) -> None:
    moved = {"ssm": np.array([0.10, 0.10]), ONE_STEP: np.array([0.10, 0.11]), TWO_STEPS: np.array([0.1, 0.1])}
    worse = AdditiveProjection(SMALL, projection.additive, "both", Comparison(moved))
    assert worse.gain_over_ssm == pytest.approx(-0.05)
    made = plan(Assignment.even(12, 3), 4, SMALL.workload, 0.5, "mtm", value=worse)
    assert made.reason.endswith("without foresight: in simulation it moved 5.0% more state than ssm")
    assert made.cost == plan(Assignment.even(12, 3), 4, SMALL.workload, 0.5).cost


def test_edge_terms_of_a_lattice_add_up_to_the_value(projection: AdditiveProjection) -> None:
    for nodes in SMALL.nodes:
        lattice = Lattice(nodes, SMALL.first[nodes])
        terms = projection.edge_terms(lattice)
        for rank in range(lattice.count):
            row = lattice.partition(rank)
            assert terms[edge_numbers(lattice, row)].sum() == pytest.approx(projection.value(row))


def test_progress_is_reported_round_by_round() -> None:
    reported: list[TrainingProgress] = []
    quickly(SMALL, rounds=3, progress=reported.append)
    assert [(one.round, one.rounds) for one in reported] == [(1, 3), (2, 3), (3, 3)]
    assert all(0 < one.moved < 1 and one.seconds > 0 for one in reported)


@pytest.mark.parametrize("terms", ["boundary", "both"])
@pytest.mark.parametrize(
    "process",
    [
        DecisionProcess(skewed(8, 1), TransitionMatrix([3], [[1.0]]), tau=0.5),
        DecisionProcess(skewed(8, 1), TransitionMatrix([1, 8], [[0.0, 1.0], [1.0, 0.0]]), tau=0.5, relax=True),
        DecisionProcess(Workload(np.ones(8), np.zeros(8)), walk(2, 4), tau=0.5),
    ],
    ids=["one node count", "one node, one task a node", "no state"],
)
def test_odd_questions_have_an_answer(process: DecisionProcess, terms: str) -> None:
    learned = quickly(process, terms=terms, rounds=1)
    assert learned.gain_over_ssm == 0
    exact = reference.projected_costs(process)
    for nodes in process.nodes:
        for row, value in exact[nodes].items():
            assert learned.value(row) == pytest.approx(value, rel=0.01, abs=1e-9)


@pytest.mark.parametrize("options", [{"terms": "all"}, {"rounds": 0}, {"samples": 0}, {"sequences": 0}])
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidProjection, match=r"Use one of|Give at least one"):
        quickly(SMALL, **options)
