"""Value tables: saved, loaded lazily, planned with, and honest about what they do not fit."""

import numpy as np
import pytest

import mdp
import storage
from mdp import InvalidTable, ValueTable
from mdp.process import DecisionProcess
from mdp.progress import Notice
from mdp.table.table import measure_drift
from migration import Assignment, Workload, plan
from storage import Secret
from storage.errors import BadObject
from tests.mdp.instances import skewed, walk

SECRET = Secret.of("a secret of this test")
WORKLOAD = skewed(16, seed=7)
MATRIX = walk(3, 5)
TAU = 0.4


@pytest.fixture(scope="module")
def exact() -> ValueTable:
    return mdp.project(WORKLOAD, MATRIX, TAU, error=1e-6)


@pytest.fixture(scope="module")
def additive() -> ValueTable:
    return mdp.project(WORKLOAD, MATRIX, TAU, method="approximate")


@pytest.mark.parametrize("kind", ["exact", "additive"])
def test_a_table_comes_back_from_the_store_as_it_was(kind: str, request: pytest.FixtureRequest) -> None:
    table: ValueTable = request.getfixturevalue(kind)
    table.save("memory:tables", "one", secret=SECRET)
    loaded = ValueTable.load("memory:tables", "one", secret=SECRET)
    current = Assignment.even(16, 4)

    assert loaded.kind == kind
    assert loaded.process.to_dict() == table.process.to_dict()
    assert loaded.facts == table.facts
    assert loaded.value(current) == table.value(current) == table.value(current.boundaries)
    assert plan_with(loaded).to_dict() == plan_with(table).to_dict()


def plan_with(table: ValueTable, workload: Workload = WORKLOAD, nodes: int = 5, tau: float = TAU):  # type: ignore[no-untyped-def]
    return plan(Assignment.even(16, 4), nodes, workload, tau=tau, strategy="mtm", value=table)


def test_an_exact_table_is_read_only_as_far_as_it_is_used(exact: ValueTable) -> None:
    exact.save("memory:lazy", "one", secret=SECRET)
    store = CountingStore(storage.open("memory:lazy"))
    loaded = ValueTable.read(store, "one", secret=SECRET)  # type: ignore[arg-type]
    described = store.reads
    loaded.value(Assignment.even(16, 4))
    once = store.reads
    loaded.value(Assignment.even(16, 4))

    assert described <= 3  # what describes it, work and state
    assert once == described + 1
    assert store.reads == once


class CountingStore:
    def __init__(self, store: storage.Store) -> None:
        self._store = store
        self.url = store.url
        self.reads = 0

    def get_range(self, *args: object) -> memoryview:
        self.reads += 1
        return self._store.get_range(*args)  # type: ignore[arg-type]


def test_the_exact_plan_is_the_best_by_brute_force(exact: ValueTable) -> None:
    from mdp import reference

    values = reference.projected_costs(exact.process)
    current = Assignment.even(16, 4)
    for nodes in (3, 5):
        made = plan_with(exact, nodes=nodes)
        best = reference.best_target(exact.process, values, current.boundaries, nodes)
        least = reference.migration_costs([current.boundaries], [best], WORKLOAD)[0, 0] + 0.8 * values[nodes][best]
        assert made.cost + made.future_cost == pytest.approx(least, abs=1e-4)
        assert "proven" in made.reason


def test_growth_that_all_tasks_share_is_no_drift_and_scales_the_values(exact: ValueTable) -> None:
    grown = Workload(10 * WORKLOAD.work, 1000 * WORKLOAD.state)
    small, large = plan_with(exact), plan_with(exact, grown)

    assert exact.drift(grown) == pytest.approx(0, abs=1e-12)
    assert large.target == small.target
    assert large.cost + large.future_cost == pytest.approx(1000 * (small.cost + small.future_cost))


def test_a_little_drift_is_planned_with_and_a_lot_falls_back_to_ssm_and_says_so(exact: ValueTable) -> None:
    rng = np.random.default_rng(3)
    little = Workload(WORKLOAD.work * rng.uniform(0.95, 1.05, 16), WORKLOAD.state * rng.uniform(0.95, 1.05, 16))
    lot = Workload(WORKLOAD.work[::-1], WORKLOAD.state[::-1])

    assert 0 < exact.drift(little) < exact.most_drift < exact.drift(lot)
    assert "without foresight" not in plan_with(exact, little).reason
    fallen = plan_with(exact, lot)
    assert "without foresight" in fallen.reason
    assert "drifted" in fallen.reason
    assert fallen.cost == plan(Assignment.even(16, 4), 5, lot, tau=TAU).cost


@pytest.mark.parametrize(
    ("tasks", "nodes", "tau", "why"), [(16, 6, TAU, "nodes"), (16, 5, 0.5, "tau"), (20, 5, TAU, "tasks")]
)
def test_what_a_table_was_not_made_for_is_planned_by_ssm(
    exact: ValueTable, tasks: int, nodes: int, tau: float, why: str
) -> None:
    workload = WORKLOAD if tasks == 16 else Workload.uniform(tasks)
    made = plan(Assignment.even(tasks, 4), nodes, workload, tau=tau, strategy="mtm", value=exact)

    assert "without foresight" in made.reason
    assert why in made.reason


def test_drift_is_the_share_that_is_on_other_tasks() -> None:
    assert measure_drift(Workload([1, 1, 2]), Workload([2, 2, 4])) == 0
    assert measure_drift(Workload([1, 0]), Workload([0, 1])) == 1
    assert measure_drift(Workload([2, 2], [1, 1]), Workload([2, 2], [1, 3])) == pytest.approx(0.25)


def test_a_table_that_is_not_there_or_was_signed_by_others_is_refused(exact: ValueTable) -> None:
    with pytest.raises(InvalidTable, match="no value table 'other'"):
        ValueTable.load("memory:none", "other", secret=SECRET)
    exact.save("memory:signed", "one", secret=SECRET)
    with pytest.raises(BadObject):
        ValueTable.load("memory:signed", "one", secret=Secret.of("the secret of somebody else"))


def test_counting_decides_between_exact_and_approximate_and_says_why() -> None:
    said: list[str] = []
    table = mdp.project(
        Workload.uniform(12),
        walk(2, 3),
        tau=0.4,
        most_partitions=10,
        report=lambda report: said.append(report.text) if isinstance(report, Notice) else None,
    )

    assert table.kind == "additive"
    assert "more than 10" in said[0]
    assert "reduced instance" in said[1]
    assert table.facts["quality"]["captured"] <= 1.2
    assert mdp.project(Workload.uniform(12), walk(2, 4)).kind == "exact"


def test_a_question_without_an_answer_is_refused() -> None:
    with pytest.raises(mdp.InvalidProjection, match="gamma"):
        mdp.project(WORKLOAD, MATRIX, gamma=1.0)
    with pytest.raises(mdp.InvalidProjection, match="method"):
        mdp.project(WORKLOAD, MATRIX, method="guess")
    with pytest.raises(mdp.InvalidProjection, match="one node a task"):
        DecisionProcess(Workload.uniform(4), walk(3, 5))
    with pytest.raises(mdp.NothingBalanced, match=r"9 nodes.*Raise tau"):
        DecisionProcess(Workload.uniform(64), walk(8, 10), tau=0.1)
