"""Even split and consistent hashing, the strategies to be better than."""

import pytest

from migration import Assignment, ScatteredAssignment, Workload, plan
from tests.migration.instances import skewed_workload


def test_even_gives_every_node_the_same_number_of_consecutive_tasks() -> None:
    made = plan(Assignment.even(64, 8), 6, skewed_workload(64, 1), strategy="even")
    assert isinstance(made.target, Assignment)
    assert max(made.target.lengths) - min(made.target.lengths) <= 1
    assert made.target.nodes == made.current.nodes[:6]


def test_even_reports_a_broken_cap_instead_of_hiding_it() -> None:
    made = plan(Assignment.even(4, 1), 2, Workload([9.0, 1.0, 1.0, 1.0]), tau=0.1, strategy="even")
    assert not made.balanced
    assert "ABOVE THE CAP" in str(made)


def test_consistent_hashing_moves_nothing_between_nodes_that_stay() -> None:
    workload = Workload.uniform(512)
    start = plan(Assignment.even(512, 8), 8, workload, strategy="consistent-hash", seed=4).target
    grown = plan(start, 10, workload, strategy="consistent-hash", seed=4)
    assert grown.moves
    assert {move.target for move in grown.moves} <= set(grown.joining)
    shrunk = plan(grown.target, 8, workload, strategy="consistent-hash", seed=4)
    assert shrunk.target.owners == start.owners


def test_consistent_hashing_depends_on_its_seed_and_on_nothing_else() -> None:
    def owners(seed: int) -> tuple[str, ...]:
        made = plan(Assignment.even(64, 4), 4, Workload.uniform(64), strategy="consistent-hash", seed=seed)
        assert isinstance(made.target, ScatteredAssignment)
        return made.target.owners

    assert owners(1) == owners(1)
    assert owners(1) != owners(2)


def test_virtual_nodes_even_out_the_task_counts() -> None:
    def most_tasks(points: int) -> int:
        made = plan(
            Assignment.even(4096, 8), 8, Workload.uniform(4096), strategy="consistent-hash", virtual_nodes=points
        )
        return max(len(made.target.tasks_of(node)) for node in made.target.nodes)

    assert most_tasks(512) < most_tasks(1)
    assert most_tasks(512) == pytest.approx(512, rel=0.2)


def test_forced_leavers_leave_under_every_baseline() -> None:
    for strategy in ("even", "consistent-hash"):
        made = plan(Assignment.even(16, 4), 3, Workload.uniform(16), strategy=strategy, leaving=["node-2"])
        assert made.leaving == ("node-2",)
