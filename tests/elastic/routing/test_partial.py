"""Choices of units for split keys: on different nodes, by load, and the same with and without a compiler."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing import (
    HASH,
    SPLITS,
    Groupings,
    HashGrouping,
    PartialGrouping,
    Routing,
    TableGrouping,
    UnitChooser,
    partial,
)
from elastic.routing.groupings import parse_grouping
from elastic.routing.node_tasks import NodeTasks
from elastic.routing.partial import SplitEstimates, choose_nodes, choose_one_by_one, choose_tasks
from migration import Assignment, ScatteredAssignment
from migration.model.mixing import mix_numbers
from storage.state import UnitId

Integers = npt.NDArray[np.int64]

TASKS = 12
HASHES = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60).map(lambda keys: np.array(keys, np.int64))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def routing_of(nodes: int, splits: str = "all", stage: int = 0) -> Routing:
    groupings = Groupings(TASKS, (*[HASH] * stage, PartialGrouping(splits)))
    return Routing(Assignment.even(TASKS, nodes), groupings)


def keys_at(task: int, count: int = 1) -> list[int]:
    """Some hashes that lead to a task."""
    return [task + TASKS * number for number in range(count)]


def rows_by_node(routing: Routing, numbers: Integers, stage: int = 0) -> dict[str, int]:
    found = dict.fromkeys(routing.assignment.nodes, 0)
    for number in numbers.tolist():
        unit = UnitId.from_number(number)
        assert (unit.stage, unit.guests) == (stage, False)
        found[routing.owners(unit)[0]] += 1
    return found


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=80), st.integers(0, 3))
def test_the_compiled_choice_is_that_of_one_row_after_the_other(rows: list[Any], seed: int) -> None:
    pytest.importorskip("numba")
    first, second, is_head = (np.array([row[place] for row in rows], kind) for place, kind in enumerate("qq?"))
    loads = np.random.default_rng(seed).integers(0, 4, 5).astype(np.float64)
    again = loads.copy()
    assert (
        choose_nodes(first, second, is_head, loads).tolist()
        == choose_one_by_one(first, second, is_head, again).tolist()
    )
    assert loads.tolist() == again.tolist()


def test_a_row_goes_to_the_less_loaded_choice_and_one_of_the_head_to_the_least_loaded_node() -> None:
    first, second, is_head = (
        np.array([0, 0, 1, 1, 0]),
        np.array([1, 1, 2, 2, 1]),
        np.array([False, False, False, True, True]),
    )
    loads = np.array([2.0, 1.0, 4.0, 3.0])
    assert choose_one_by_one(first, second, is_head, loads).tolist() == [1, 0, 1, 0, 1]
    assert loads.tolist() == [4.0, 4.0, 4.0, 3.0]


def test_both_choices_of_a_key_are_on_different_nodes_and_stay_the_same() -> None:
    tasks = NodeTasks.of(Assignment.even(TASKS, 4))
    hashes = np.random.default_rng(1).integers(-(2**62), 2**62, 2_000)
    no_head = np.zeros(len(hashes), np.bool_)
    at_home = choose_tasks(hashes, no_head, tasks, np.zeros(4), splits_tail=False)
    assert at_home.tolist() == (hashes % TASKS).tolist()
    # One after the other, each with a full first choice.
    seconds = []
    for one in hashes:
        loads = np.zeros(4)
        loads[tasks.owners[one % TASKS]] = 9.0
        seconds.append(int(choose_tasks(np.array([one]), no_head[:1], tasks, loads, splits_tail=True)[0]))
    assert all(tasks.owners[one] != tasks.owners[two] for one, two in zip(at_home, seconds, strict=True))
    again = choose_tasks(hashes[:1], no_head[:1], tasks, np.eye(4)[tasks.owners[at_home[0]]] * 9, splits_tail=True)
    assert again[0] == seconds[0]
    pairs = np.bincount(np.array(seconds), minlength=TASKS)
    assert pairs.min() > 0.6 * len(hashes) / TASKS, "the second choices are not spread over all tasks"


def test_the_second_hash_does_not_follow_from_the_first_choice() -> None:
    hashes = np.arange(0, 40_000 * TASKS, TASKS)  # all of task 0
    counts = np.bincount((mix_numbers(hashes.view(np.uint64)) % np.uint64(7)).astype(np.int64))
    assert abs(counts / len(hashes) - 1 / 7).max() < 0.01


@given(HASHES, st.sampled_from(list(SPLITS)), st.integers(1, 5), st.integers(0, 1))
def test_every_row_is_in_a_unit_of_its_stage(hashes: Integers, splits: str, nodes: int, stage: int) -> None:
    routing = routing_of(nodes, splits, stage)
    numbers = UnitChooser(clock=Clock()).unit_numbers(hashes, routing, stage)
    assert {UnitId.from_number(number) for number in numbers.tolist()} <= set(routing.units(stage))
    if splits == "none" or nodes == 1:
        assert numbers.tolist() == routing.unit_numbers(hashes, stage).tolist()


def test_one_hot_key_is_spread_evenly_over_all_nodes_one_task_each() -> None:
    routing = routing_of(4, "head")
    numbers = UnitChooser(clock=Clock()).unit_numbers(np.full(4_000, 5), routing, 0)
    assert set(rows_by_node(routing, numbers).values()) == {1_000}
    assert len(set(numbers.tolist())) == 4
    assert 5 in numbers


def test_with_head_only_splitting_light_keys_stay_at_home() -> None:
    routing = routing_of(4, "head")
    light = np.random.default_rng(0).permutation(np.arange(6, 1_006))
    rows = np.concatenate([light, np.full(1_000, 5)])
    numbers = UnitChooser(clock=Clock()).unit_numbers(rows, routing, 0)
    assert numbers[:1_000].tolist() == (light % TASKS).tolist()
    assert set(rows_by_node(routing, numbers).values()) == {500}


def test_two_choices_balance_keys_that_all_live_on_one_node() -> None:
    routing = routing_of(3)
    rows = np.array(keys_at(0, 3_000))
    spread = rows_by_node(routing, UnitChooser(clock=Clock()).unit_numbers(rows, routing, 0))
    assert max(spread.values()) - min(spread.values()) < 30


def test_a_key_of_more_than_a_fifth_of_the_share_of_a_node_is_of_the_head() -> None:
    routing = routing_of(4, "head")
    for count, is_split in ((51, True), (50, False), (49, False)):  # of 1,000 rows, where 1/(5 n) is 50
        rows = np.array([*range(TASKS, TASKS + 1_000 - count), *[5] * count])
        numbers = UnitChooser(clock=Clock()).unit_numbers(rows, routing, 0)
        assert (len(set(numbers[1_000 - count :].tolist())) > 1) == is_split


def test_load_estimates_outlive_a_batch_and_are_halved_after_an_interval() -> None:
    clock = Clock()
    routing, chooser = routing_of(2), UnitChooser(10.0, clock)
    home = [key for task in range(TASKS // 2) for key in keys_at(task, 40)]
    numbers = chooser.unit_numbers(np.array(home), routing, 0)
    assert rows_by_node(routing, numbers) == {"node-1": 120, "node-2": 120}
    light = np.array(keys_at(0, 1))
    sent = [rows_by_node(routing, chooser.unit_numbers(light + TASKS * (100 + n), routing, 0)) for n in range(6)]
    assert [one["node-1"] for one in sent] == [1, 0, 1, 0, 1, 0]
    estimates = chooser._estimates[0]
    assert estimates.loads.tolist() == [123.0, 123.0]
    clock.now = 25.0
    chooser.unit_numbers(light[:0], routing, 0)
    assert estimates.loads.tolist() == [123 / 4, 123 / 4]
    clock.now = 29.0
    chooser.unit_numbers(light[:0], routing, 0)
    assert estimates.loads.tolist() == [123 / 4, 123 / 4]
    clock.now = 30.0
    chooser.unit_numbers(light[:0], routing, 0)
    assert estimates.loads.tolist() == [123 / 8, 123 / 8]


def test_a_key_that_was_hot_some_intervals_ago_is_not_of_the_head() -> None:
    clock = Clock()
    routing, chooser = routing_of(4, "head"), UnitChooser(10.0, clock)
    chooser.unit_numbers(np.full(1_000, 5), routing, 0)
    clock.now = 60.0
    numbers = chooser.unit_numbers(np.array([*range(TASKS, TASKS + 1_000), *[5] * 8]), routing, 0)
    assert set(numbers[1_000:].tolist()) == {5}


def test_a_node_that_joins_does_not_get_all_rows() -> None:
    chooser = UnitChooser(clock=Clock())
    chooser.unit_numbers(np.arange(3_000), routing_of(2), 0)
    spread = rows_by_node(routing_of(3), chooser.unit_numbers(np.arange(300), routing_of(3), 0))
    assert max(spread.values()) <= 101


def test_a_node_that_takes_the_place_of_a_busy_one_begins_as_the_others_do() -> None:
    estimates = SplitEstimates(3_600.0, Clock())
    tasks = NodeTasks.of(routing_of(3).assignment)
    estimates.choose(np.array(keys_at(0, 60) + keys_at(TASKS - 1, 1)), tasks, splits_tail=False)
    assert estimates.loads.max() >= 60
    estimates.choose(np.array(keys_at(0)), replace(tasks, names=("node-1", "node-2", "node-9")), splits_tail=False)
    assert sorted(estimates.loads.tolist()) == [0, 0, 1]


def test_the_tasks_of_a_node_need_not_be_neighbours() -> None:
    assignment = ScatteredAssignment.from_owners(["a", "b", "a", "c", "b", "a"], ["a", "b", "c", "idle"])
    tasks = NodeTasks.of(assignment)
    assert tasks.nodes == 3
    for node, owned in enumerate(([0, 2, 5], [1, 4], [3])):
        mixed = np.arange(0, 64 << 32, 1 << 32).astype(np.uint64)
        assert sorted(set(tasks.task_on(np.full(64, node), mixed).tolist())) == owned


def test_groupings_that_need_no_estimate_are_asked_as_ever() -> None:
    hashes = np.arange(100)
    for grouping in (HashGrouping(), TableGrouping()):
        routing = Routing(Assignment.even(TASKS, 3), Groupings(TASKS, (grouping,)))
        chooser = UnitChooser(clock=Clock())
        assert chooser.unit_numbers(hashes, routing, 0).tolist() == routing.unit_numbers(hashes, 0).tolist()
        assert not chooser._estimates


def test_without_a_compiler_units_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).zipf(1.4, 500) % 40
    compiled = UnitChooser(clock=Clock()).unit_numbers(rows, routing_of(4), 0)
    monkeypatch.setattr(partial, "load_compiled", lambda *_: None)
    assert UnitChooser(clock=Clock()).unit_numbers(rows, routing_of(4), 0).tolist() == compiled.tolist()


def test_a_grouping_is_declared_by_its_kind_and_what_it_splits() -> None:
    assert parse_grouping("partial") == PartialGrouping("all", "all")
    assert parse_grouping("partial:head") == PartialGrouping("head", "head")
    for text in ("partial:tail", "hash:head", "part"):
        with pytest.raises(InvalidJob, match="Use one of"):
            parse_grouping(text)
    with pytest.raises(InvalidJob, match="Use one of 'all', 'head', 'none'"):
        PartialGrouping("some")


def test_a_partial_grouping_survives_its_stored_form() -> None:
    routing = Routing(Assignment.even(TASKS, 2), Groupings(TASKS, (HASH, PartialGrouping("head", "none")), 4), 7)
    assert Routing.from_json(routing.to_json()) == routing
    assert routing.groupings.nodes_choose
    assert not routing_of(2).groupings.nodes_choose
