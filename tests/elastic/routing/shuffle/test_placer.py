"""Shuffled rows: by turns, or to the node that will be done first; and what a forecast is made of."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing import Groupings, Routing, ShuffleGrouping, UnitChooser, parse_grouping
from elastic.routing.groupings import with_scheduler
from elastic.routing.shuffle import NO_FORECAST, SCHEDULERS, ExecutionSketch, Forecast, SketchShape
from elastic.routing.shuffle.placer import ShufflePlacer
from migration import Assignment
from storage.state import UnitId

TASKS, SHAPE = 12, SketchShape(4, 512)
FAST, SLOW = 11, 13  # hashes of cost keys


def routing_of(nodes: int, scheduler: str = "posg", tasks: int = TASKS) -> Routing:
    return Routing(Assignment.even(tasks, nodes), Groupings(tasks, (ShuffleGrouping(scheduler),)))


def sketch_of(**seconds: float) -> ExecutionSketch:
    sketch = ExecutionSketch(SHAPE)
    names = {"fast": FAST, "slow": SLOW}
    for name, each in seconds.items():
        sketch.add(np.full(100, names[name], np.int64), np.full(100, each))
    return sketch


KNOWN = Forecast.from_sketches({"node-1": sketch_of(fast=0.001, slow=0.050)})


def place(hashes: Any, forecast: Forecast = KNOWN, nodes: int = 3, scheduler: str = "posg") -> list[str]:
    """Return the node of each row."""
    routing = routing_of(nodes, scheduler)
    numbers = ShufflePlacer(ShuffleGrouping(scheduler), routing, 0, forecast).unit_numbers(np.array(hashes, np.int64))
    return [routing.owners(UnitId.from_number(number))[0] for number in numbers.tolist()]


def count(nodes: list[str]) -> list[int]:
    return [nodes.count(f"node-{number}") for number in (1, 2, 3)]


def test_round_robin_gives_every_node_the_same_number_of_rows_also_over_chunks_and_batches() -> None:
    routing = routing_of(3, "round-robin")
    taken = dict.fromkeys(routing.assignment.nodes, 0)
    for batch in range(3):
        placer = ShufflePlacer(ShuffleGrouping("round-robin"), routing, 0, Forecast(batch=batch))
        for rows in (1, 2, 1):  # in each batch one node gets a row more
            for number in placer.unit_numbers(np.arange(rows)).tolist():
                taken[routing.owners(UnitId.from_number(number))[0]] += 1
        assert placer.group_rows == 0
        assert placer.seconds == {}
    assert set(taken.values()) == {4}


def test_slow_rows_are_spread_and_fast_ones_fill_up() -> None:
    nodes = place([SLOW] * 3 + [FAST] * 60)
    assert count(nodes[:3]) == [1, 1, 1]
    assert count(nodes) == [21, 21, 21]
    nodes = place([SLOW] + [FAST] * 130)
    assert nodes.count(nodes[0]) == 1 + 10  # 50 fast ones take as long, and the last 30 are spread


@given(st.lists(st.sampled_from([FAST, SLOW]), max_size=60), st.sampled_from(["posg", "posg-batch"]), st.integers(0, 5))
def test_no_node_is_above_another_by_more_than_a_row(hashes: list[int], scheduler: str, batch: int) -> None:
    forecast = Forecast.from_sketches({"node-1": sketch_of(fast=0.001, slow=0.050)})
    placer = ShufflePlacer(
        ShuffleGrouping(scheduler), routing_of(3), 0, Forecast(forecast.costs, batch=batch, mean_seconds=0.1)
    )
    placer.unit_numbers(np.array(hashes, np.int64))
    loads = list(placer.seconds.values())
    assert max(loads) - min(loads) <= 0.050 + 1e-9
    assert sum(loads) == pytest.approx(0.001 * hashes.count(FAST) + 0.050 * hashes.count(SLOW))


def test_chunks_of_a_batch_are_scheduled_as_the_whole() -> None:
    placer = ShufflePlacer(ShuffleGrouping(), routing_of(3), 0, KNOWN)
    for chunk in ([SLOW], [FAST] * 20, [FAST] * 20):
        placer.unit_numbers(np.array(chunk, np.int64))
    assert sorted(placer.seconds.values()) == pytest.approx([0.02, 0.02, 0.05])


def test_a_node_with_a_backlog_gets_rows_when_the_others_have_as_much() -> None:
    busy = Forecast(KNOWN.costs, backlogs={"node-2": 0.010})
    assert count(place([FAST] * 20, busy)) == [10, 0, 10]
    assert count(place([FAST] * 50, busy)) == [20, 10, 20]


def test_a_slow_node_gets_fewer_rows() -> None:
    assert count(place([FAST] * 50, Forecast(KNOWN.costs, slowness={"node-3": 2.0}))) == [20, 20, 10]


def test_rows_that_take_no_time_at_all_are_spread_too() -> None:
    nothing = replace(Forecast.from_sketches({"node-1": sketch_of(fast=0.0, slow=0.050)}), is_uniform=False)
    assert count(place([FAST] * 30, nothing)) == [10, 10, 10]


def test_a_slow_node_is_expected_to_take_longer_for_its_rows() -> None:
    forecast = Forecast(KNOWN.costs, {"node-1": 2.0})
    placer = ShufflePlacer(ShuffleGrouping("round-robin"), routing_of(2), 0, replace(forecast, mean_seconds=0.001))
    placer.unit_numbers(np.full(10, FAST))
    assert placer.seconds == pytest.approx({"node-1": 0.010, "node-2": 0.005})


def test_a_backlog_is_ignored_while_rows_count_instead_of_seconds() -> None:
    assert count(place([FAST] * 9, Forecast(backlogs={"node-2": 0.5}))) == [3, 3, 3]


def test_senders_that_do_not_talk_to_each_other_do_not_meet() -> None:
    firsts = [place([SLOW], KNOWN.of_sender(sender, 3))[0] for sender in range(3)]
    assert len(set(firsts)) == 3
    assert KNOWN.of_sender(5, 3).share == KNOWN.of_sender(2, 3).share


def test_ties_go_to_another_node_in_every_batch() -> None:
    firsts = [place([SLOW], Forecast(KNOWN.costs, batch=batch))[0] for batch in range(3)]
    assert len(set(firsts)) == 3


def test_rows_of_a_cost_key_share_a_task_of_each_node_for_a_batch() -> None:
    def units(batch: int) -> set[int]:
        placer = ShufflePlacer(ShuffleGrouping(), routing_of(3), 0, Forecast(KNOWN.costs, batch=batch))
        return set(placer.unit_numbers(np.full(30, FAST, np.int64)).tolist())

    assert len(units(0)) == 3
    assert len(set().union(*map(units, range(4)))) == TASKS  # all tasks get their turn


def test_a_stage_behind_the_first_gets_units_of_its_own() -> None:
    groupings = Groupings(TASKS, (ShuffleGrouping(), ShuffleGrouping("round-robin")))
    routing = Routing(Assignment.even(TASKS, 3), groupings)
    numbers = UnitChooser().place(routing, 1, NO_FORECAST).unit_numbers(np.arange(30))
    assert {UnitId.from_number(number).stage for number in numbers.tolist()} == {1}
    assert groupings.nodes_choose
    assert not groupings.nodes_shuffle
    assert Groupings(TASKS, (ShuffleGrouping("round-robin"), ShuffleGrouping("posg"))).nodes_shuffle
    assert not Groupings(TASKS, (ShuffleGrouping("posg"),)).nodes_shuffle


def test_a_forecast_pools_what_all_nodes_know() -> None:
    forecast = Forecast.from_sketches({"a": sketch_of(fast=0.001), "b": sketch_of(slow=0.05), "c": sketch_of()})
    assert forecast.estimate(np.array([FAST, SLOW])).tolist() == pytest.approx([0.001, 0.05])
    assert forecast.mean_seconds == pytest.approx(0.0255)
    assert set(forecast.slowness) == {"a", "b"}


def test_while_nothing_is_known_all_rows_count_the_same() -> None:
    empty = Forecast.from_sketches({"a": sketch_of()})
    assert empty.costs is None
    assert empty.estimate(np.array([FAST, SLOW])).tolist() == [1.0, 1.0]
    assert empty.group_rows == 64


def test_rows_that_take_nothing_are_spread_too() -> None:
    free = Forecast.from_sketches({"a": sketch_of(fast=0.0)})
    assert count(place([FAST] * 9, free)) == [3, 3, 3]
    assert free.group_rows == 1 << 30


@pytest.mark.parametrize(("seconds", "rows"), [(0.05, 1), (0.001, 40), (1e-6, 40_000)])
def test_a_group_of_rows_that_is_measured_takes_a_hundred_times_as_long_as_a_call(seconds: float, rows: int) -> None:
    forecast = Forecast.from_sketches({"a": sketch_of(fast=seconds * 0.5, slow=seconds * 1.5)})
    assert forecast.group_rows == pytest.approx(rows, abs=1)
    uniform = Forecast.from_sketches({"a": sketch_of(fast=seconds, slow=seconds)})
    assert uniform.group_rows == pytest.approx(10 * 0.04 / seconds, abs=1)  # there is only a change to notice


def test_declarations_name_the_scheduler() -> None:
    assert parse_grouping("shuffle") == ShuffleGrouping("posg")
    for scheduler in SCHEDULERS:
        grouping = parse_grouping(with_scheduler("shuffle", scheduler))
        assert grouping == ShuffleGrouping(scheduler)
        assert Groupings.from_json(Groupings(4, (grouping,)).to_json()) == Groupings(4, (grouping,))
        assert grouping.is_measured is (scheduler != "round-robin")
    assert with_scheduler("table", None) == "table"


@pytest.mark.parametrize(
    ("grouping", "scheduler", "message"),
    [
        ("shuffle", "fastest", "unknown scheduler 'fastest'. Use one of 'round-robin', 'posg', 'posg-batch'."),
        ("hash", "posg", "'hash' has no scheduler"),
        ("shuffle:posg", "posg-batch", "'shuffle:posg' names its scheduler, but 'posg-batch' was given"),
    ],
)
def test_a_scheduler_that_does_not_fit_is_refused(grouping: str, scheduler: str, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        with_scheduler(grouping, scheduler)


def test_the_unit_numbers_are_integers_of_the_sort_that_split_needs() -> None:
    placer = ShufflePlacer(ShuffleGrouping(), routing_of(3), 0, KNOWN)
    numbers: npt.NDArray[np.int64] = placer.unit_numbers(np.zeros(0, np.int64))
    assert numbers.dtype == np.int64
    assert len(numbers) == 0


EVEN = Forecast.from_sketches({"node-1": sketch_of(fast=0.010, slow=0.010), "node-2": sketch_of(fast=0.010)})


@given(
    st.sampled_from(["posg", "posg-batch"]),
    st.integers(0, 5),
    st.lists(st.integers(1, 40), max_size=4),
    st.integers(0, 1),
    st.floats(0, 0.003),
)
def test_rows_that_all_cost_the_same_are_given_to_nodes_in_turn(
    scheduler: str, batch: int, chunks: list[int], sender: int, backlog: float
) -> None:
    known = replace(EVEN, batch=batch, backlogs={"node-2": backlog}).of_sender(sender, 2)
    turns = replace(NO_FORECAST, batch=batch).of_sender(sender, 2)
    placers = [
        ShufflePlacer(ShuffleGrouping(name), routing_of(3, name), 0, forecast)
        for name, forecast in ((scheduler, known), ("round-robin", turns))
    ]
    for rows in chunks:
        hashes = np.random.default_rng(rows).integers(0, 1 << 62, rows)
        ours, theirs = (placer.unit_numbers(hashes).tolist() for placer in placers)
        assert ours == theirs
    assert sum(placers[0].seconds.values()) == pytest.approx(0.010 * sum(chunks))


def test_a_node_with_much_left_gets_fewer_rows_also_where_all_cost_the_same() -> None:
    assert EVEN.is_uniform
    assert count(place([FAST] * 30, replace(EVEN, backlogs={"node-2": 0.05}))) == [10, 10, 10]
    assert count(place([FAST] * 30, replace(EVEN, backlogs={"node-2": 0.09}))) == [13, 4, 13]


def test_costs_that_differ_are_scheduled() -> None:
    assert not KNOWN.is_uniform
    assert NO_FORECAST.is_balanced_by_turns(NO_FORECAST.loads(["node-1"]), 1)
    assert not KNOWN.is_balanced_by_turns(KNOWN.loads(["node-1", "node-2"]), 10)
