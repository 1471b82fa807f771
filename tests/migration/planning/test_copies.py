"""Plans with standbys against brute force with a real matching."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from migration import (
    Assignment,
    Infeasible,
    InvalidInput,
    InvalidPlan,
    InvalidStandbys,
    Plan,
    ScatteredAssignment,
    Standbys,
    Workload,
    plan,
)
from migration.kernels import vectorised
from migration.model.ownership import Ownership
from migration.planning import balance, copies, reference
from migration.planning.problem import Problem
from tests.migration.instances import Question, intervals, random_question, skewed_workload


@dataclass(frozen=True)
class CopiesQuestion:
    """A question about an assignment with standbys; `kind` tells how they are placed."""

    question: Question
    current: Ownership
    standbys: Standbys
    kind: str

    def plan(self, standby_count: int | None = None) -> Plan:
        asked = self.question
        return plan(
            self.current,
            asked.nodes,
            asked.workload,
            asked.tau,
            leaving=asked.leaving,
            allow_idle=asked.allow_idle,
            standbys=self.standbys,
            standby_count=standby_count,
        )

    def optimum(self) -> float | None:
        asked = self.question
        holders = [
            {owner, *followers} - set(asked.leaving)
            for owner, followers in zip(self.current.owners, self.standbys.nodes_by_task, strict=True)
        ]
        return reference.cheapest_cost_with_copies(holders, asked.nodes, asked.workload, asked.tau, asked.allow_idle)


def on_a_line(current: Ownership, count: int) -> Standbys:
    """Standbys on the nearest other intervals, none of them around the ends: what every node holds is one interval."""
    names = list(dict.fromkeys(run.node for run in current.runs))
    place = {name: number for number, name in enumerate(names)}

    def neighbours(owner: str) -> list[str]:
        others = sorted((name for name in names if name != owner), key=lambda name: abs(place[name] - place[owner]))
        return others[:count]

    return Standbys(tuple(tuple(neighbours(owner)) for owner in current.owners))


def random_copies_question(seed: int, kind: str) -> CopiesQuestion:
    """Standbys on a line or a ring, after a failover, or anywhere."""
    rng = random.Random(f"{kind} {seed}")  # noqa: S311
    question = random_question(rng.randrange(1 << 30))
    current: Ownership = question.current
    count = rng.randint(0, 3)
    if kind == "line":
        return CopiesQuestion(question, current, on_a_line(current, count), kind)
    standbys = Standbys.place(current, count)
    if kind == "failover":
        lost = rng.choice(current.nodes)
        current, standbys = fail(current, standbys, lost, returns=rng.random() < 0.5)
        question = replace(question, leaving=tuple(set(question.leaving) & set(current.nodes)))
    elif kind == "anywhere":
        owners = [rng.choice(current.nodes) for _ in current.owners]
        current = ScatteredAssignment.from_owners(owners, current.nodes)
        rows = [rng.sample(current.nodes, rng.randint(0, min(3, len(current.nodes)))) for _ in owners]
        standbys = Standbys(
            tuple(tuple(name for name in row if name != owner) for row, owner in zip(rows, owners, strict=True))
        )
    return CopiesQuestion(question, current, standbys, kind)


def fail(current: Ownership, standbys: Standbys, lost: str, *, returns: bool) -> tuple[ScatteredAssignment, Standbys]:
    """Promote the first standby of every task of a lost node; tasks without one stay. It returns as their standby."""
    owners, rows = [], []
    for owner, row in zip(current.owners, standbys.nodes_by_task, strict=True):
        promoted = row[0] if owner == lost and row else owner
        owners.append(promoted)
        rows.append(
            tuple(name for name in ((*row, lost) if returns else row) if name != promoted and (returns or name != lost))
        )
    rows = [tuple(dict.fromkeys(row)) for row in rows]
    nodes = [node for node in current.nodes if node != lost or returns or lost in owners]
    return ScatteredAssignment.from_owners(owners, nodes), Standbys(tuple(rows))


def check_against_the_oracle(asked: CopiesQuestion) -> bool:
    """Whether the plan says that nothing better exists; raises if there is."""
    best = asked.optimum()
    if best is None:
        with pytest.raises(Infeasible):
            asked.plan()
        return True
    made = asked.plan()
    proven = made.reason.endswith("any balanced assignment") or made.reason.startswith("already")
    assert made.cost >= best - 1e-6
    if proven:
        assert math.isclose(made.cost, best, rel_tol=1e-7, abs_tol=1e-6), asked
    return proven


@pytest.mark.parametrize("kind", ["line", "ring", "failover"])
@pytest.mark.parametrize("part", range(max(1, settings().max_examples // 100)))
def test_thousands_of_seeded_questions_get_the_least_critical_path(kind: str, part: int) -> None:
    seeds = range(700 * part, 700 * (part + 1))
    proven = [check_against_the_oracle(random_copies_question(seed, kind)) for seed in seeds]
    assert sum(proven) >= (1.0 if kind == "line" else 0.99) * len(proven)


@given(st.integers(0, 1 << 40))
def test_no_plan_is_cheaper_wherever_copies_are_if_the_plan_says_so(seed: int) -> None:
    check_against_the_oracle(random_copies_question(seed, "anywhere"))


@given(st.integers(0, 1 << 40), st.sampled_from(["line", "ring", "failover", "anywhere"]))
def test_both_kernels_choose_the_same_partition_and_labels_to_the_last_bit(seed: int, kind: str) -> None:
    compiled = pytest.importorskip("migration.kernels.compiled")
    for offset in range(5):
        rng = np.random.default_rng([seed, offset])
        asked = random_copies_question(seed + offset, kind)
        workload, question = asked.question.workload, asked.question
        problem = Problem.of(
            asked.current, question.nodes, workload, question.tau, standbys=asked.standbys, allow_idle=True
        )
        first = balance.earliest_starts(workload, problem.cap)
        held = copies.Held.of(problem)
        weights = np.zeros((len(held.nodes), workload.tasks + 1))
        np.cumsum(held.tasks * rng.random(workload.tasks), axis=1, out=weights[:, 1:])
        for order in copies.find_orders(held.tasks, first)[0][:4]:
            rows, starts, stops = np.array(order, np.int64).reshape(-1, 3).T.copy()
            arguments = (workload.work_prefix, weights[rows], starts, stops, first, min(question.nodes, workload.tasks))
            for allow_idle in (False, True):
                gain, boundaries, labels = compiled.label_partition(*arguments, allow_idle)
                plain = vectorised.label_partition(*arguments, allow_idle)
                assert (gain, boundaries.tolist(), labels.tolist()) == (plain[0], plain[1].tolist(), plain[2].tolist())


@given(st.integers(0, 1 << 40), st.sampled_from(["line", "ring", "failover", "anywhere"]), st.integers(0, 4))
def test_a_plan_has_the_standbys_the_copies_and_the_loads_it_states(seed: int, kind: str, count: int) -> None:
    asked = random_copies_question(seed, kind)
    workload = asked.question.workload
    try:
        made = asked.plan(count)
    except Infeasible:
        assume(False)
    assert made.standbys is not None
    wanted = min(count, len(made.target.nodes) - 1)
    held = [{owner, *rows} for owner, rows in zip(asked.current.owners, asked.standbys.nodes_by_task, strict=True)]
    missing = []
    for task, (owner, followers) in enumerate(zip(made.target.owners, made.standbys.nodes_by_task, strict=True)):
        assert owner not in followers
        assert len(set(followers)) == len(followers) == wanted
        missing += [(task, node) for node in followers if node not in held[task]]
    assert [(copy.task, copy.node) for copy in made.copies] == missing
    assert made.background_cost == pytest.approx(sum(float(workload.state[task]) for task, _ in missing))
    for move in made.moves:
        assert move.size == (0 if move.target in held[move.task] else workload.state[move.task])
    assert {move.task for move in made.switches} == {m.task for m in made.moves if m.target in held[m.task]}
    assert made.cost == pytest.approx(sum(move.size for move in made.moves))
    for node, load in zip(made.target.nodes, made.loads, strict=True):
        followed = [task for task, nodes in enumerate(made.standbys.nodes_by_task) if node in nodes]
        assert followed == made.standbys.tasks_of(node)
        own = made.target.tasks_of(node)
        assert load == pytest.approx(float(workload.work[own].sum()) + 0.9 * float(workload.work[followed].sum()))
    neighbours = min(count + count % 2, asked.question.nodes - 1)
    assert made.cap == pytest.approx(
        (1 + asked.question.tau) * workload.total_work * (1 + 0.9 * neighbours) / asked.question.nodes
    )
    assert made.balanced
    assert Plan.from_json(made.to_json()) == made


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_scaling_in_with_standbys_on_neighbours_has_an_empty_critical_path(count: int, seed: int) -> None:
    made = plan(
        Assignment.even(64, 8), 7, skewed_workload(64, seed), standbys=Standbys.place(Assignment.even(64, 8), count)
    )
    assert made.moves
    assert made.cost == 0
    assert made.switches == made.moves


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("nodes", range(2, 14))
def test_any_node_can_leave_without_state_on_the_critical_path(count: int, nodes: int) -> None:
    current, workload = Assignment.even(64, nodes), Workload.uniform(64)
    for node in current.nodes:
        made = plan(
            current, nodes - 1, workload, leaving=[node], standbys=Standbys.place(current, count), relax=nodes == 13
        )
        assert made.cost == 0
        assert made.target.nodes == tuple(name for name in current.nodes if name != node)
        assert made.reason.endswith("any balanced assignment") or made.relaxed


def test_without_copies_yet_a_plan_costs_what_it_costs_without_standbys_and_makes_all_copies() -> None:
    current, workload = Assignment.even(64, 8), skewed_workload(64, 3)
    made = plan(current, 10, workload, standby_count=1)
    assert made.cost == pytest.approx(plan(current, 10, workload).cost)
    assert made.switches == ()
    assert len(made.copies) >= 64 - len(made.moves)


def test_state_that_is_empty_is_not_shuffled_about_either() -> None:
    current = Assignment.even(12, 3)
    made = plan(current, 4, Workload([1.0] * 12, [0.0] * 12), tau=0, standbys=Standbys.place(current, 1))
    assert made.cost == 0
    assert len(made.moves) - len(made.switches) <= 3


def test_an_owner_keeps_its_tasks_rather_than_switch_roles_for_nothing() -> None:
    current = intervals(4, 4)
    both = Standbys.place(current, 1)  # both nodes hold everything
    made = plan(current, 2, Workload([3.0, *[1.0] * 7]), tau=0.0, standbys=both)
    assert [move.task for move in made.moves] == [3]
    assert made.cost == made.background_cost == 0


def test_a_copy_on_a_node_that_leaves_counts_for_nothing() -> None:
    current = intervals(4, 4, 4)
    on_the_leaver = Standbys.of(12, {task: ["node-3"] for task in range(8)})
    made = plan(current, ["node-1", "node-2"], Workload.uniform(12), tau=0.0, standbys=on_the_leaver)
    assert made.cost == plan(current, ["node-1", "node-2"], Workload.uniform(12), tau=0.0).cost == 6


def test_a_node_that_joins_with_copies_takes_over_for_nothing() -> None:
    current = intervals(6, 6)
    spare = Standbys.of(12, {task: ["spare"] for task in range(4, 8)})
    made = plan(current, 3, Workload.uniform(12), tau=0.0, new_nodes=["spare"], standbys=spare)
    assert made.cost == 0
    assert made.target.tasks_of("spare") == [4, 5, 6, 7]


def test_other_strategies_count_what_copies_save_and_do_not_look_for_it() -> None:
    current, workload = Assignment.even(24, 4), skewed_workload(24, 1)
    standbys = Standbys.place(current, 2)
    for strategy in ("even", "consistent-hash"):
        made = plan(current, 3, workload, 1.0, strategy, standbys=standbys)
        bare = plan(current, 3, workload, 1.0, strategy)
        assert made.target == bare.target
        assert made.cost == pytest.approx(bare.cost - sum(float(workload.state[move.task]) for move in made.switches))
        assert made.standbys == Standbys.place(made.target, 2)


def test_the_text_of_a_plan_tells_switches_copies_and_the_share() -> None:
    current = Assignment.even(64, 8)
    text = str(plan(current, 7, skewed_workload(64, 1), standbys=Standbys.place(current, 1), standby_share=0.85))
    assert "in the background" in text
    assert "0.85" in text


@pytest.mark.parametrize(
    ("standbys", "options", "match"),
    [
        ({0: ["node-1"]}, {}, "owns task 0"),
        ({12: ["node-2"]}, {}, "task 12"),
        ({0: ["node-2", "node-2"]}, {}, "once"),
        ({0: "node-2"}, {}, "list of names"),
        ({0: [""]}, {}, "non-empty"),
        (Standbys.of(4, {}), {}, "4 tasks"),
        ({}, {"standby_count": -1}, "standby_count"),
        ({}, {"standby_count": True}, "standby_count"),
        ({}, {"standby_share": math.nan}, "standby_share"),
        ({}, {"standby_share": -0.1}, "standby_share"),
    ],
)
def test_standbys_that_cannot_be_are_refused(standbys: Any, options: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        plan(intervals(6, 6), 2, Workload.uniform(12), standbys=standbys, **options)


def test_a_plan_that_was_edited_is_refused() -> None:
    current = intervals(6, 6)
    made = plan(current, 3, Workload.uniform(12), standbys=Standbys.place(current, 1))
    document = made.to_dict()
    for change in ({"copies": document["copies"][1:]}, {"standbys": None}, {"standbys_before": None}):
        with pytest.raises(InvalidPlan):
            Plan.from_dict({**document, **change})
    with pytest.raises(InvalidStandbys):
        Plan.from_dict({**document, "standbys": {"runs": [{"tasks": 12, "nodes": ["node-1"]}]}})
    for broken in ({}, {"runs": [{"tasks": 1}]}, {"runs": None}):
        with pytest.raises(InvalidStandbys):
            Standbys.from_dict(broken)


@pytest.mark.parametrize("count", [1, 2])
def test_nodes_of_a_ring_keep_their_place_where_all_could_switch_with_their_neighbours_for_nothing(count: int) -> None:
    current = Assignment.even(64, 8)
    workload = Workload([*[1.0] * 63, 3.0])
    made = plan(current, 8, workload, tau=0.12, standbys=Standbys.place(current, count))
    assert made.cost == 0
    assert made.moves
    assert made.target.nodes == current.nodes
