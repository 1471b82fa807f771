"""From a plan by key to portions: who becomes a guest of which task, what goes home, and how much moves at a time."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elastic.control.key_portions import KeyPortion, make_portions, measure_overhead
from elastic.operators.key_records import RecordBytes
from elastic.routing import HASH, Groupings, KeyTable, KeyTargets, TableGrouping
from migration import Assignment, KeyLoads, KeyPlan, plan_keys

TASKS, NODES, STAGE = 12, 3, 1
ASSIGNMENT = Assignment.even(TASKS, NODES)
LIMIT = 100.0


def groupings_of(entries: dict[int, int]) -> Groupings:
    return Groupings(TASKS, (HASH, TableGrouping(KeyTable.from_entries(entries))))


def node_of(groupings: Groupings, hashed: int) -> str:
    return ASSIGNMENT.owners[groupings.unit_of(hashed, STAGE).task]


def plan_for(
    groupings: Groupings, work: dict[int, float], strategy: str = "knap", assignment: Assignment = ASSIGNMENT
) -> KeyPlan:
    """Plan these keys, whose state is ten times their work."""
    nodes = list(assignment.nodes)
    home = [nodes.index(assignment.owners[hashed % TASKS]) for hashed in work]
    current = [nodes.index(assignment.owners[groupings.unit_of(hashed, STAGE).task]) for hashed in work]
    amounts = np.array(list(work.values()))
    loads = KeyLoads(np.array(list(work)), np.array(home), np.array(current), amounts, 10 * amounts)
    return plan_keys(loads, nodes, theta=0.1, relax=True, most_entries=50, strategy=strategy)


def carry_out(groupings: Groupings, portions: list[KeyPortion]) -> Groupings:
    for portion in portions:
        groupings = Groupings(TASKS, portion.targets.regroup(groupings))
    return groupings


WORK = st.dictionaries(st.integers(-60, 60), st.floats(0.1, 30), min_size=2, max_size=25)


@given(WORK, st.data())
def test_afterwards_every_key_is_on_the_node_that_the_plan_says(work: dict[int, float], data: st.DataObject) -> None:
    away = data.draw(st.dictionaries(st.sampled_from(sorted(work)), st.integers(0, TASKS - 1), max_size=6))
    before = groupings_of({hashed: task for hashed, task in away.items() if task != hashed % TASKS})
    plan = plan_for(before, work)
    after = carry_out(before, make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT))
    targets = {move.hash: move.target for move in plan.moves}
    for hashed in work:
        assert node_of(after, hashed) == targets.get(hashed, node_of(before, hashed))
    assert len(after[STAGE].table) == len(plan.entries)  # type: ignore[attr-defined]


@given(WORK, st.data())
def test_protected_keys_are_guests_after_every_plan(work: dict[int, float], data: st.DataObject) -> None:
    protected = data.draw(st.sets(st.sampled_from(sorted(work)), max_size=8))
    before = Groupings(TASKS, (HASH, TableGrouping.declare(sorted(protected), TASKS)))
    plan = plan_for(before, work)
    portions = make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT)
    after = carry_out(before, portions)
    assert sum(len(portion.targets) for portion in portions) == len(plan.moves)  # no key that stays is in a portion
    targets = {move.hash: move.target for move in plan.moves}
    for hashed in work:
        assert node_of(after, hashed) == targets.get(hashed, node_of(before, hashed))
    assert all(after.unit_of(hashed, STAGE).guests for hashed in protected)


@given(WORK)
def test_a_portion_is_bounded_for_every_node_or_is_one_key(work: dict[int, float]) -> None:
    before = groupings_of({})
    plan = plan_for(before, work)
    moves = {move.hash: move for move in plan.moves}
    portions = make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT)
    for portion in portions:
        moved = [moves[hashed] for hashed in portion.targets.hashes.tolist()]
        assert portion.size == sum(move.size for move in moved)
        sent, received = defaultdict(list), defaultdict(list)
        for move in moved:
            sent[move.source].append(move.size)
            received[move.target].append(move.size)
        assert all(sum(sizes) <= LIMIT or len(sizes) == 1 for sizes in [*sent.values(), *received.values()])
    assert sum(len(portion.targets) for portion in portions) == len(plan.moves)


def test_no_more_portions_are_made_than_the_limit_requires() -> None:
    before = groupings_of({})
    work = {TASKS * number: 5.0 for number in range(30)}  # all on node-1; 50 bytes each
    plan = plan_for(before, work)
    assert len(plan.moves) == 19
    portions = make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT)
    assert [len(portion.targets) for portion in portions] == [*[2] * 9, 1]  # two are exactly what node-1 may part with
    assert len(make_portions(plan, STAGE, ASSIGNMENT, before, 50.0 * 19)) == 1


def test_a_key_above_the_limit_moves_with_others_if_its_nodes_have_nothing_else_to_do() -> None:
    before = groupings_of({1: 9, 6: 2, 11: 6})  # every key on the node of another
    assignment = Assignment(ASSIGNMENT.nodes, (0, 5, 9, TASKS))
    plan = plan_for(before, {1: 12.0, 6: 12.0, 11: 12.0}, "min-table", assignment)
    assert len(plan.moves) == 3
    [portion] = make_portions(plan, STAGE, assignment, before, LIMIT)
    assert portion.size == 360.0
    assert carry_out(before, [portion])[STAGE] == TableGrouping()  # home, and not among the guests of a task there


def test_an_entry_that_leads_to_the_node_of_its_own_task_is_removed() -> None:
    at_home, away = 0, 5  # tasks 0 to 3 are on node-1, tasks 8 to 11 on node-3
    before = groupings_of({at_home: 2, away: 9})
    plan = plan_for(before, {at_home: 1.0, away: 1.0, 6: 1.0})
    assert not len(plan.moves)
    [portion] = make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT)
    assert portion.size == 0
    assert carry_out(before, [portion])[STAGE] == TableGrouping(KeyTable.from_entries({away: 9}))


def test_the_state_of_a_key_whose_entry_is_removed_passes_through_the_log_too() -> None:
    before = groupings_of({0: 2, 5: 9})
    plan = plan_for(before, {0: 1.0, 5: 1.0, 6: 1.0})
    [portion] = make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT, {0: 70.0, 5: 1.0})
    assert portion.size == 70


def test_a_portion_counts_what_its_records_take_in_the_log() -> None:
    records = RecordBytes(node=1_000.0, target=100.0, pair=1.0)
    targets = KeyTargets.from_mapping(STAGE, {0: 4, 12: 4, 24: 5, 1: 4, 8: 4})  # of tasks 0, 1 and 8 on two nodes
    found = measure_overhead(targets, ASSIGNMENT, groupings_of({}), records)
    assert found == 2 * 1_000 + 3 * 100 + 4 * 1
    before = groupings_of({})
    plan = plan_for(before, {TASKS * number: 5.0 for number in range(30)})
    portions = make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT, {}, records)
    # Every portion has two or one of the keys of task 0, for another node.
    assert all(portion.size - 50 * len(portion.targets) in (1_101, 1_202) for portion in portions)


def test_entries_are_removed_before_others_are_added() -> None:
    at_home = 0
    before = groupings_of({at_home: 2})
    work = {at_home: 1.0, **{TASKS * number: 5.0 for number in range(1, 30)}}  # all on node-1
    first, *others = make_portions(plan_for(before, work), STAGE, ASSIGNMENT, before, LIMIT)
    assert others
    assert at_home in first.targets.hashes.tolist()


def test_a_plan_that_changes_nothing_has_no_portions() -> None:
    before = groupings_of({5: 9})
    plan = plan_for(before, {0: 1.0, 5: 1.0, 6: 1.0})
    assert make_portions(plan, STAGE, ASSIGNMENT, before, LIMIT) == []


def test_keys_of_a_task_that_move_to_a_node_become_guests_of_one_task_there() -> None:
    work = {number: 1.0 for number in range(40 * TASKS) if number % TASKS < 4}  # all on node-1
    before = groupings_of({})
    after = carry_out(before, make_portions(plan_for(before, work), STAGE, ASSIGNMENT, before, 1e9))
    hosts = defaultdict(set)
    for hashed in work:
        unit = after.unit_of(hashed, STAGE)
        if unit.guests:
            hosts[hashed % TASKS, ASSIGNMENT.owners[unit.task]].add(unit.task)
    assert {node for _, node in hosts} == {"node-2", "node-3"}
    assert all(len(tasks) == 1 for tasks in hosts.values())
    assert len({task for tasks in hosts.values() for task in tasks}) > 2  # spread over the tasks of a node
