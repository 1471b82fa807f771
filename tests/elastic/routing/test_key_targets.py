"""Targets of keys: the table after a move, and which unit has to part with which keys."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing import HASH, HOME, Groupings, KeyTable, KeyTargets, TableGrouping
from storage.state import UnitId

TASKS = 5
HASHES = st.integers(-30, 30)
ENTRIES = st.dictionaries(HASHES, st.integers(0, TASKS - 1), max_size=8)
TARGETS = st.dictionaries(HASHES, st.none() | st.integers(0, TASKS - 1), max_size=8)


def groupings_of(entries: dict[int, int]) -> Groupings:
    return Groupings(TASKS, (HASH, TableGrouping(KeyTable.from_entries(entries))))


@given(ENTRIES, TARGETS)
def test_every_key_is_led_to_its_target_and_all_others_stay(entries: dict[int, int], tasks: dict[int, int]) -> None:
    before = groupings_of(entries)
    after = Groupings(TASKS, KeyTargets.from_mapping(1, tasks).regroup(before))
    for hashed in range(-30, 31):
        expected = before.unit_of(hashed, 1)
        if hashed in tasks:
            task = tasks[hashed]
            is_home = task is None or task == hashed % TASKS
            expected = UnitId(1, hashed % TASKS) if is_home else UnitId(1, task, guests=True)
        assert after.unit_of(hashed, 1) == expected
    assert after[0] is HASH


@given(ENTRIES, TARGETS)
def test_orders_name_the_keys_whose_unit_changes_and_no_others(entries: dict[int, int], tasks: dict[int, int]) -> None:
    before, targets = groupings_of(entries), KeyTargets.from_mapping(1, tasks)
    after = Groupings(TASKS, targets.regroup(before))
    ordered = {
        (source, hashed, target)
        for source, orders in targets.orders(before).items()
        for hashed, target in zip(orders.hashes.tolist(), orders.targets.tolist(), strict=True)
    }
    moved = {hashed for hashed in tasks if before.unit_of(hashed, 1) != after.unit_of(hashed, 1)}
    assert ordered == {(before.unit_of(hashed, 1).number, hashed, after.unit_of(hashed, 1).number) for hashed in moved}


@given(st.sets(HASHES), ENTRIES, TARGETS)
def test_protected_keys_stay_guests_wherever_they_are_sent(
    protected: set[int], entries: dict[int, int], tasks: dict[int, int]
) -> None:
    declared = TableGrouping.declare(sorted(protected), TASKS)
    table = declared.table.update(np.array(list(entries), np.int64), np.array(list(entries.values()), np.int64))
    before = Groupings(TASKS, (HASH, TableGrouping(table, declared.protected)))
    after = Groupings(TASKS, KeyTargets.from_mapping(1, tasks).regroup(before))
    for hashed in protected:
        assert after.unit_of(hashed, 1).guests
        task = tasks[hashed] if hashed in tasks else entries.get(hashed)
        assert after.unit_of(hashed, 1).task == (hashed % TASKS if task is None else task)
    assert TableGrouping.from_json(json.loads(json.dumps(after[1].to_json()))) == after[1]


@given(st.sets(HASHES), st.sets(HASHES), ENTRIES, st.integers(1, 4))
def test_a_change_of_the_protected_keys_displaces_those_that_become_or_were_protected(
    first: set[int], then: set[int], entries: dict[int, int], limit: int
) -> None:
    away = {hashed: task for hashed, task in entries.items() if task != hashed % TASKS}
    start = Groupings(TASKS, (HASH, TableGrouping.declare(sorted(first), TASKS)))
    grouping = Groupings(TASKS, KeyTargets.from_mapping(1, away).regroup(start))[1]
    assert isinstance(grouping, TableGrouping)
    groupings = Groupings(TASKS, (HASH, grouping.protect(sorted(then))))
    moved = 0
    while (displaced := KeyTargets.of_displaced(groupings, limit)) is not None:
        assert 0 < len(displaced) <= limit
        assert sum(len(orders.hashes) for orders in displaced.orders(groupings).values()) == len(displaced)
        moved += len(displaced)
        groupings = Groupings(TASKS, displaced.regroup(groupings))
    assert moved == len((first ^ then) - set(away))
    for hashed in range(-30, 31):
        unit = groupings.unit_of(hashed, 1)
        assert unit.guests == (hashed in then or hashed in away)
        assert unit.task == away.get(hashed, hashed % TASKS)


def test_no_entry_leads_to_the_task_of_the_hash() -> None:
    [_, after] = KeyTargets.from_mapping(1, {7: 2, 8: 2}).regroup(groupings_of({}))
    assert after == TableGrouping(KeyTable.from_entries({8: 2}))


def test_a_unit_whose_keys_all_stay_gets_no_orders() -> None:
    targets = KeyTargets.from_mapping(1, {7: 2, 8: 2, 9: None})
    orders = targets.orders(groupings_of({8: 2}))
    assert orders == {}
    moving = KeyTargets.from_mapping(1, {8: 2, 9: 2}).orders(groupings_of({8: 2}))
    assert {source: one.hashes.tolist() for source, one in moving.items()} == {UnitId(1, 9 % TASKS).number: [9]}


def test_keys_of_a_hashed_stage_cannot_move() -> None:
    with pytest.raises(InvalidJob, match=r'grouped by hash.*grouping="table"'):
        KeyTargets.from_mapping(0, {7: 2}).regroup(groupings_of({}))


def test_a_target_beyond_the_tasks_of_the_job_is_refused() -> None:
    with pytest.raises(InvalidJob, match="names task 5"):
        KeyTargets.from_mapping(1, {7: TASKS}).orders(groupings_of({}))


@pytest.mark.parametrize(("hashes", "tasks"), [([1, 1], [0, 0]), ([1], [0, 0]), ([1], [HOME - 1])])
def test_inconsistent_targets_are_refused(hashes: list[int], tasks: list[int]) -> None:
    with pytest.raises(InvalidJob):
        KeyTargets(0, np.array(hashes), np.array(tasks))


def test_targets_compare_by_value() -> None:
    one, same = KeyTargets.from_mapping(1, {7: 2}), KeyTargets.from_mapping(1, {7: 2})
    assert one == same
    assert hash(one) == hash(same)
    assert one != KeyTargets.from_mapping(0, {7: 2})
    assert one != KeyTargets.from_mapping(1, {7: None})
    assert repr(one) == "KeyTargets(1 keys of stage 1)"
