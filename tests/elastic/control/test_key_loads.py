"""The load of keys from the heartbeats of all nodes, against sums over plain records."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.control import KeyRequest
from elastic.control.key_loads import collect_keys, compute_key_loads
from elastic.control.key_portions import make_portions
from elastic.core.ids import UnitId
from elastic.core.key_statistics import KeyColumns, KeyStatistics, UnitKeys
from elastic.core.messages import Heartbeat
from elastic.core.nodes import NodeView
from elastic.errors import KeysNotMeasured
from elastic.routing import Groupings, KeyTable, Routing, TableGrouping
from migration import Assignment, ScatteredAssignment
from migration.keys import plan_keys

TASKS = 6
NODES = ("node-1", "node-2", "node-3")
STAGE = 1


class Key(NamedTuple):
    """A key as a node measured it in a unit; those that are not `heavy` are in the totals of the unit only."""

    hash: int
    rows: int
    seconds: float
    state_bytes: int
    heavy: bool = True


Counted = Mapping[UnitId, list[Key]]


def routing_of(table: Mapping[int, int]) -> Routing:
    grouping = TableGrouping(KeyTable.from_entries(table))
    groupings = Groupings(TASKS, (TableGrouping(), grouping), 1)
    return Routing(Assignment.even(TASKS, nodes=NODES), groupings, 1)


def node_of(name: str, counted: Counted, seconds: float = 10.0, batches: int = 0, epoch: int = 1) -> NodeView:
    units = tuple(
        UnitKeys(
            unit,
            seconds,
            len(keys),
            sum(key.rows for key in keys),
            sum(key.seconds for key in keys),
            sum(key.state_bytes for key in keys),
        )
        for unit, keys in counted.items()
    )
    heavy = [(key, place) for place, keys in enumerate(counted.values()) for key in keys if key.heavy]
    columns = KeyColumns.of(
        [key.hash for key, _ in heavy],
        [place for _, place in heavy],
        [key.rows for key, _ in heavy],
        [key.seconds for key, _ in heavy],
        [key.state_bytes for key, _ in heavy],
    )
    names = {place: f"key {key.hash}" for place, (key, _) in enumerate(heavy)}
    report = KeyStatistics.of(0, seconds, units, columns, names, batches, groupings_epoch=epoch)
    heartbeat = Heartbeat(name, f"{name}.1", keys=KeyStatistics.from_json(report.to_json()))
    return NodeView(name, f"{name}.1", "address", 1, serving=True, heartbeat=heartbeat)


def nodes_of(routing: Routing, keys: list[Key], intervals: Mapping[str, float]) -> list[NodeView]:
    """Return what the owners of all units report if each has the keys that the routing gives it."""
    counted: dict[str, dict[UnitId, list[Key]]] = {
        node: {unit: [] for unit in routing.units_on(node, [STAGE])} for node in NODES
    }
    known, grouping = {key.hash for key in keys}, routing.groupings[STAGE]
    assert isinstance(grouping, TableGrouping)
    idle = [Key(hashed, 0, 0.0, 0) for hashed, _ in grouping.table if hashed not in known]
    for key in (*keys, *idle):
        unit = routing.groupings.unit_of(key.hash, STAGE)
        counted[routing.owners(unit)[0]][unit].append(key)
    return [node_of(node, counted[node], intervals[node]) for node in NODES]


def with_report(node: NodeView, **changes: Any) -> NodeView:
    assert node.heartbeat is not None
    assert node.heartbeat.keys is not None
    return replace(node, heartbeat=replace(node.heartbeat, keys=replace(node.heartbeat.keys, **changes)))


HASHES = st.integers(-(2**63), 2**63 - 1)
TABLES = st.dictionaries(HASHES, st.integers(0, TASKS - 1), max_size=5)
KEYS = st.builds(
    Key, HASHES, st.integers(0, 100), st.integers(0, 64).map(lambda n: n / 8), st.integers(0, 99), st.booleans()
)
INTERVALS = st.fixed_dictionaries({node: st.sampled_from([1.0, 8.0, 16.0]) for node in NODES})


@given(TABLES, st.lists(KEYS, max_size=20, unique_by=lambda key: key.hash), INTERVALS)
def test_work_and_state_of_keys_and_remainders_add_up(
    table: dict[int, int], keys: list[Key], intervals: dict[str, float]
) -> None:
    routing = routing_of(table)
    keys = [key._replace(heavy=key.heavy or key.hash in table) for key in keys]  # as nodes report them
    found = collect_keys(nodes_of(routing, keys, intervals), routing, STAGE)
    work, remainder = defaultdict[int, float](float), defaultdict[int, float](float)
    for key in keys:
        unit = routing.groupings.unit_of(key.hash, STAGE)
        rate = key.seconds / intervals[routing.owners(unit)[0]]
        if key.heavy:
            work[key.hash] += rate
        else:
            remainder[unit.task] += rate
    assert set(found.hashes.tolist()) == set(work) | set(table)
    assert dict(zip(found.hashes.tolist(), found.work.tolist(), strict=True)) == {**dict.fromkeys(table, 0.0), **work}
    assert found.total_work == pytest.approx(sum(work.values()) + sum(remainder.values()))
    assert found.unmeasured == ()
    if not len(found.hashes):
        return
    loads = compute_key_loads(nodes_of(routing, keys, intervals), routing, STAGE)
    assert loads.remainder_work.tolist() == pytest.approx([remainder[task] for task in range(TASKS)])
    assert loads.loads.total_work + loads.pinned_work.sum() == pytest.approx(found.total_work)
    total_bytes = sum(key.state_bytes for key in keys)
    assert loads.loads.total_size + loads.pinned_size.sum() == pytest.approx(total_bytes)


def test_rounding_leaves_no_work_to_the_remainder_of_a_unit() -> None:
    routing = routing_of({})
    keys = [Key(TASKS * number, 1, seconds, 1) for number, seconds in enumerate((0.1, 0.2, 0.3))]
    [unit] = {routing.groupings.unit_of(key.hash, STAGE) for key in keys}
    node = node_of(routing.owners(unit)[0], {unit: keys})
    assert node.heartbeat is not None
    assert node.heartbeat.keys is not None
    [counted] = node.heartbeat.keys.units
    report = replace(node.heartbeat.keys, units=(counted._replace(seconds=counted.seconds + 2e-16),))
    found = collect_keys([replace(node, heartbeat=replace(node.heartbeat, keys=report))], routing, STAGE)
    assert found.remainder_work == {unit: 0.0}


@given(TABLES, st.lists(HASHES, min_size=1, max_size=9, unique=True))
def test_every_key_is_where_the_routing_places_it_now_and_can_be_planned(
    table: dict[int, int], hashes: list[int]
) -> None:
    routing = routing_of(table)
    before = routing_of({})  # by which it was counted
    measured = {*hashes, *table}
    nodes = nodes_of(before, [Key(key_hash, 1, 1.0, 10) for key_hash in measured], dict.fromkeys(NODES, 10.0))
    found = compute_key_loads(nodes, routing, STAGE)
    owners = routing.assignment.owners
    for place, key_hash in enumerate(found.loads.hashes.tolist()):
        task = table.get(key_hash, key_hash % TASKS)
        assert (found.tasks[place], found.are_guests[place]) == (task, key_hash in table)
        assert found.nodes[found.loads.current[place]] == owners[task]
        assert found.nodes[found.loads.home[place]] == owners[key_hash % TASKS]
    assert plan_keys(found.loads, found.nodes, relax=True, pinned=found.pinned_work).keys == len({*hashes, *table})


def test_a_unit_that_has_moved_counts_on_its_new_node_only() -> None:
    routing = routing_of({})
    unit = UnitId(STAGE, 0)
    [owner, *others] = sorted(NODES, key=lambda node: node != routing.owners(unit)[0])
    nodes = [node_of(owner, {unit: [Key(6, 4, 1.0, 10)]}), node_of(others[0], {unit: [Key(6, 9, 2.0, 10)]})]
    found = collect_keys(nodes, routing, STAGE)
    assert (found.rows.tolist(), found.work.tolist(), found.names) == ([4], [0.1], {6: "key 6"})
    assert len(found.unmeasured) == 2 * TASKS - 1


def test_a_key_that_moved_within_the_interval_has_the_work_of_both_units() -> None:
    routing = routing_of({6: 5})
    home, guests = UnitId(STAGE, 0), UnitId(STAGE, 5, guests=True)
    nodes = [node_of("node-1", {home: [Key(6, 4, 1.0, 0)]}), node_of("node-3", {guests: [Key(6, 6, 2.0, 10)]})]
    found = collect_keys(nodes, routing, STAGE)
    assert found.rows.tolist() == [10]
    assert found.work.tolist() == pytest.approx([0.3])
    assert (found.tasks.tolist(), found.are_guests.tolist()) == ([5], [True])


def test_work_is_per_batch_so_that_a_node_that_completed_one_more_does_not_look_busier() -> None:
    routing = routing_of({})
    nodes = [
        node_of(node, {unit: [Key(unit.task, batches, 0.1 * batches, 1)]}, batches=batches)
        for node, batches in (("node-1", 3), ("node-2", 2))
        for unit in routing.units_on(node, [STAGE])[:1]
    ]
    assert collect_keys(nodes, routing, STAGE).work.tolist() == pytest.approx([0.1, 0.1])


def test_work_is_per_second_while_a_node_has_completed_no_batch() -> None:
    routing = routing_of({})
    nodes = [
        node_of(node, {unit: [Key(unit.task, 1, seconds, 1)]}, batches=batches)
        for node, seconds, batches in (("node-1", 1.0, 3), ("node-2", 2.0, 0))
        for unit in routing.units_on(node, [STAGE])[:1]
    ]
    assert collect_keys(nodes, routing, STAGE).work.tolist() == pytest.approx([0.1, 0.2])


def test_a_unit_that_has_just_come_does_not_look_busier_than_a_tenth_of_an_interval_allows() -> None:
    unit = UnitId(STAGE, 0)
    columns = KeyColumns.of([6], [0], [1], [0.5], [10])
    report = KeyStatistics.of(0, 10.0, (UnitKeys(unit, 0.0, 1, 1, 0.5, 10),), columns)
    node = NodeView("node-1", "i", "a", 1, serving=True, heartbeat=Heartbeat("node-1", "i", keys=report))
    assert collect_keys([node], routing_of({}), STAGE).work.tolist() == [0.5]


@pytest.mark.parametrize("heavy", [True, False])
@pytest.mark.parametrize("stride", [1, 4])
@pytest.mark.parametrize("rows", [1, 100])
def test_the_error_of_a_load_is_what_independent_rows_vary_by(heavy: bool, stride: int, rows: int) -> None:
    routing = routing_of({})
    keys = [Key(hashed, rows, 3.0, 1, heavy) for hashed in range(TASKS)] + [Key(2**40 * TASKS, rows, 3.0, 1)]
    nodes = nodes_of(routing, keys, dict.fromkeys(NODES, 5.0))
    measured = compute_key_loads([with_report(node, stride=stride) for node in nodes], routing, STAGE)
    counted = stride * sum(key.heavy for key in keys) + sum(not key.heavy for key in keys)
    per_node = 7 * rows / len(NODES)
    assert measured.load_error == pytest.approx(per_node**-0.5 * (counted / len(keys)) ** 0.5)


def test_a_plan_aims_at_less_than_theta_by_the_error_of_what_was_measured() -> None:
    routing = routing_of({})
    for rows, share in ((10, 0.5), (10**6, 0.9)):  # few rows: half of theta; many: nearly theta
        keys = [Key(hashed, rows, 1.0 + hashed % 7, 1) for hashed in range(120)]
        measured = compute_key_loads(nodes_of(routing, keys, dict.fromkeys(NODES, 10.0)), routing, STAGE)
        assert measured.load_error == pytest.approx((120 * rows / 3) ** -0.5, rel=0.3)
        plan = KeyRequest(theta=0.04).plan(measured)
        aimed = plan.cap / (sum(plan.loads_after) / 3) - 1
        assert plan.theta == 0.04
        assert aimed == pytest.approx(max(0.02, 0.04 - 3 * measured.load_error))
        assert (aimed >= share * 0.04, plan.balanced) == (True, True)


@pytest.mark.parametrize(("epochs", "is_measured"), [((1, 1, 1), True), ((1, 2, 2), False), ((2, 1, 1), False)])
def test_a_plan_needs_intervals_that_are_all_before_or_all_after_keys_moved(
    epochs: tuple[int, int, int], is_measured: bool
) -> None:
    routing = routing_of({})
    keys = {node: Key(routing.assignment.tasks_of(node)[0], 1, 0.1, 1) for node in NODES}
    nodes = [
        node_of(node, {unit: [key] if unit == UnitId(STAGE, key.hash) else [] for unit in units}, epoch=epoch)
        for (node, key), epoch in zip(keys.items(), epochs, strict=True)
        for units in [routing.units_on(node, [STAGE])]
    ]
    if is_measured:
        assert len(compute_key_loads(nodes, routing, STAGE).loads.hashes) == len(NODES)
        return
    with pytest.raises(KeysNotMeasured, match="'words' have not been measured by 'node-") as refused:
        compute_key_loads(nodes, routing, STAGE, "words")
    late = tuple(node for node, epoch in zip(NODES, epochs, strict=True) if epoch == 1)
    assert (refused.value.stage, refused.value.nodes) == ("words", late)


@pytest.mark.parametrize("lost", NODES)
def test_a_node_that_has_not_measured_its_units_is_not_taken_for_idle(lost: str) -> None:
    routing = routing_of({})
    keys = [Key(hashed, 10, 1.0, 1) for hashed in range(TASKS)]
    nodes = nodes_of(routing, keys, dict.fromkeys(NODES, 10.0))
    for silent in ([node for node in nodes if node.name != lost], [_without_a_unit(node, lost) for node in nodes]):
        with pytest.raises(KeysNotMeasured, match=f"by '{lost}' since nodes started or since keys or tasks moved"):
            compute_key_loads(silent, routing, STAGE)


def test_a_key_that_has_joined_the_table_since_the_last_report_is_not_taken_for_empty() -> None:
    nodes = nodes_of(routing_of({}), [Key(7, 10, 1.0, 1)], dict.fromkeys(NODES, 10.0))
    assert compute_key_loads(nodes, routing_of({7: 3}), STAGE).loads.size.tolist() == [1.0]
    with pytest.raises(KeysNotMeasured, match="keys or tasks moved"):
        compute_key_loads(nodes, routing_of({7: 3, 8: 3}), STAGE)


def _without_a_unit(node: NodeView, lost: str) -> NodeView:
    """Return what a node reports whose last unit has come after its last interval."""
    assert node.heartbeat is not None
    assert node.heartbeat.keys is not None
    return with_report(node, units=node.heartbeat.keys.units[:-1]) if node.name == lost else node


def test_a_part_of_keys_takes_what_the_node_with_the_largest_says() -> None:
    routing = routing_of({})
    nodes = nodes_of(routing, [Key(6, 10, 1.0, 1)], dict.fromkeys(NODES, 10.0))
    parts: list[dict[int, float]] = [{STAGE: 70.0, 0: 500.0}, {STAGE: 90.0}, {}]
    measured = [with_report(node, part_bytes=found) for node, found in zip(nodes, parts, strict=True)]
    assert compute_key_loads(measured, routing, STAGE).part_bytes == 90.0
    assert compute_key_loads(nodes, routing, STAGE).part_bytes == 0.0


@pytest.mark.parametrize("table", [{}, {6: 5}], ids=["no table", "a table of the run before"])
def test_without_a_measured_key_there_is_nothing_to_plan_with(table: dict[int, int]) -> None:
    silent = NodeView("node-1", "i", "a", 1, serving=True, heartbeat=Heartbeat("node-1", "i"))
    with pytest.raises(KeysNotMeasured, match="stage 1 have not been measured by 'node-1', 'node-2', 'node-3'"):
        compute_key_loads([silent, NodeView("node-2", "j", "", 0, serving=False)], routing_of(table), STAGE)


def test_keys_of_other_stages_are_left_out() -> None:
    node = node_of("node-1", {UnitId(0, 0): [Key(12, 1, 1.0, 1)], UnitId(STAGE, 0): [Key(6, 1, 1.0, 1)]})
    found = collect_keys([node], routing_of({}), STAGE)
    assert np.array_equal(found.hashes, [6])
    assert found.names == {6: "key 6"}


def test_a_node_without_tasks_gets_no_keys() -> None:
    """As after a failover: its standbys elsewhere own all that it did, and a key needs a task to be a guest of."""
    routing = routing_of({})
    assignment = ScatteredAssignment.from_owners([*NODES[:2] * 3], NODES)
    routing = routing.with_assignment(assignment, 2)
    keys = [Key(hash_, 10, 1.0 + 5.0 * (hash_ == 0), 100) for hash_ in range(2 * TASKS)]
    loads = compute_key_loads(nodes_of(routing, keys, dict.fromkeys(NODES, 8.0)), routing, STAGE)
    assert loads.nodes == NODES[:2]
    planned = KeyRequest(theta=0.01).plan(loads)
    assert planned.moves
    assert make_portions(planned, STAGE, assignment, routing.groupings, 1e9)
