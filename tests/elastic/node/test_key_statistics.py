"""Statistics of the keys on a node, against a plain count of the rows that its units took."""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.core.ids import NO_BATCH, Batch, Epoch, UnitId
from elastic.core.key_statistics import KeyStatistics
from elastic.core.messages import (
    ApplyStep,
    DropUnits,
    Heartbeat,
    InstallUnits,
    ReleaseUnits,
    UnitHandle,
    encode_message,
)
from elastic.core.pipeline import create_runners, describe_pipeline
from elastic.core.steps import Position, Step
from elastic.core.unit_host import UnitHost
from elastic.node.key_collector import KeyCollector
from elastic.node.key_statistics import NodeKeyStatistics
from elastic.node.unit_keys import UnitKeyCounter
from elastic.operators import Context, KeyedColumns, KeyedOperator, Operator, Stage, State, ValueState
from elastic.operators.key_sizes import sample_sizes
from elastic.operators.stage_runner import StepOutput
from elastic.operators.stages import build_stages
from elastic.routing import Groupings, KeyTable, Routing, TableGrouping, hash_keys, split
from elastic.settings import Settings
from migration import Assignment
from storage.state import BatchTime
from tests.elastic.node.states import LEASE

TASKS = 4
INTERVAL = 10.0
START = Position(NO_BATCH, 0)
ROWS = pa.schema([("key", pa.string())])
WORDS = st.text("abcdefg", max_size=2)


class Counts(Operator):
    """Counts rows by key; gets every row, because it combines none."""

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key string", {"count": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        state.value.count("count", state.value.rows_for(rows))


class Pairs(Counts):
    """Counts rows by key and by the length of the key times a number: some keys have many entries."""

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key string, other long", {"count": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        others = pa.array([number if key == "many" else 0 for number, key in enumerate(rows["key"].to_pylist())])
        state.value.count("count", state.value.rows_for(rows.append_column("other", others)))


class SlowKey(KeyedOperator):
    """Keeps the rows of a key as a text of that length, and needs time for one of the keys."""

    def handle_key(self, key: Any, rows: Any, state: ValueState, _: Context) -> None:
        state.update((state.get() or "") + "x" * len(rows))
        if key == "slow":
            time.sleep(0.005)


def hashes_of(keys: Sequence[str | None]) -> list[int]:
    hashes: list[int] = hash_keys([pa.array(keys, pa.string())]).tolist()
    return hashes


class World:
    """A node with its units, and a clock that the test sets."""

    def __init__(
        self,
        operator: Operator | None = None,
        table: Mapping[str, int] | None = None,
        through: int = -1,  # the batch with which the units come
        *,
        is_measured: bool = True,  # whether the first heartbeat comes before the first batch
        **settings: Any,
    ) -> None:
        stages = build_stages(Stage(operator or Counts(), "key", grouping="table"), ())
        pipeline = describe_pipeline(stages, ROWS, TASKS)
        given = Settings(**{"key_interval_seconds": INTERVAL, **settings})
        stage_runners = create_runners(pipeline, "fail")
        self.now = 0.0
        self.batch = through + 1
        self.runners = stage_runners
        self.host = UnitHost(stage_runners)
        self.statistics = NodeKeyStatistics(given, pipeline, stage_runners, lambda: self.now)
        self.host.observe_step = self.statistics.observe_step
        entries = dict(zip(hashes_of(list(table or {})), (table or {}).values(), strict=True))
        self.groupings = Groupings(TASKS, (TableGrouping(KeyTable.from_entries(entries)),), 1)
        self.routing = Routing(Assignment.even(TASKS, 1), self.groupings)
        self.install(self.groupings.units(0), through=through, reported=through)
        if is_measured:
            self.statistics.measure(self.host)

    def install(self, units: Sequence[UnitId], *, through: int = -1, reported: int = -1, epoch: int = 1) -> None:
        handles = tuple(UnitHandle(unit, None, Batch(through), Position(Batch(reported), 0)) for unit in units)
        for handle in self.host.install(InstallUnits(Epoch(epoch), handles, (), routing=self.routing)).to_load:
            assert self.host.set_state(handle, None)

    def send(self, *keys: str | None, complete: bool = True) -> None:
        """Let the units take a batch of these keys."""
        rows = pa.table({"key": pa.array(keys, pa.string())})
        slices = split(rows, self.groupings.unit_numbers(hash_keys([rows["key"]]), 0)).slices()
        step = Step(Position(Batch(self.batch), 0), complete, (), BatchTime(self.batch, 0))
        self.host.add_step(ApplyStep(Epoch(1), step, routing=self.routing))
        for ready in self.host.ready_steps():
            self.host.take(ready, {number: [table] for number, table in slices.items()})
        self.batch += 1

    def take_microseconds_per_row(self, microseconds: float) -> None:
        """Let a row cost the same time in all units, whatever the machine does besides."""

        def observe(unit: UnitId, slices: Sequence[pa.Table], output: StepOutput, _seconds: float) -> None:
            self.statistics.observe_step(unit, slices, output, output.rows * microseconds * 1e-6)

        self.host.observe_step = observe

    def end_interval(self, seconds: float = INTERVAL) -> KeyStatistics:
        self.now += seconds
        self.host.measure_states()
        self.statistics.measure(self.host)
        assert self.statistics.report is not None
        return self.statistics.report


def rows_by_hash(report: KeyStatistics) -> dict[int, int]:
    return dict(zip(report.columns.hashes.tolist(), report.columns.rows.tolist(), strict=True))


def names_of(report: KeyStatistics) -> dict[str, int]:
    """Return the rows of keys by name."""
    return {name: int(report.columns.rows[place]) for place, name in report.names.items()}


def test_a_report_says_how_many_batches_its_interval_had() -> None:
    world = World()
    world.send("a")
    world.end_interval()
    for _ in range(3):
        world.send("a", "b")
    assert world.end_interval().batches == 3
    world.send()
    assert world.end_interval().batches == 1


def test_a_batch_whose_rows_were_counted_is_one_of_the_interval_though_rounds_of_it_are_left() -> None:
    world = World()
    world.send("a")
    world.end_interval()
    world.send("a")
    world.send("a", complete=False)
    report = world.end_interval()
    assert (report.batches, rows_by_hash(report)) == (2, {hashes_of(["a"])[0]: 2})


def test_an_interval_begins_anew_when_keys_move_and_the_report_before_it_stays() -> None:
    world = World()
    world.send("a")
    world.end_interval()
    world.send("a", "a", "a")
    before = world.end_interval()
    assert (before.groupings_epoch, names_of(before)) == (1, {"a": 3})
    world.send("a", "b")
    world.groupings = Groupings(TASKS, (TableGrouping(KeyTable.from_entries({hashes_of(["a"])[0]: 3})),), 2)
    world.routing = Routing(Assignment.even(TASKS, 1), world.groupings)
    world.send("a", "b", "b")
    assert world.end_interval() is before  # what came before and with the change is dropped, so nothing is complete
    for _ in range(2):
        world.send("a", "b")
    after = world.end_interval()
    assert (after.groupings_epoch, after.batches, after.seconds) == (2, 2, INTERVAL)
    assert names_of(after) == {"a": 2, "b": 2}


def test_an_interval_without_a_batch_keeps_the_report_of_the_one_before() -> None:
    world = World()
    world.send("a")
    world.end_interval()
    world.send("a", "b")
    busy = world.end_interval()
    assert world.end_interval() is busy
    world.send("b")
    after = world.end_interval()
    assert (after.batches, after.seconds, names_of(after)) == (1, INTERVAL, {"b": 1})
    assert {unit.interval_seconds for unit in after.units} == {INTERVAL}


@pytest.mark.parametrize("through", [-1, 6], ids=["a new job", "a unit that was elsewhere"])
def test_a_node_reports_nothing_before_it_has_taken_a_batch(through: int) -> None:
    """Else a node that joins while no rows come would look idle beside others that were busy before."""
    world = World(through=through)
    for _ in range(3):
        world.now += INTERVAL
        world.statistics.measure(world.host)
    assert world.statistics.report is None
    world.send()  # no rows of these units, while those of others have some
    report = world.end_interval()
    assert (len(report.units), report.columns.rows.tolist()) == (2 * TASKS, [])


BATCHES = st.lists(st.lists(st.none() | WORDS, max_size=20), min_size=1, max_size=5)


def test_rows_that_come_before_the_first_heartbeat_are_reported() -> None:
    world = World(is_measured=False)
    world.send("a", "a")
    assert names_of(world.end_interval()) == {"a": 2}


def test_the_time_that_keys_take_to_move_is_no_work_of_the_unit() -> None:
    world = World()
    world.take_microseconds_per_row(1)
    world.send("a", "b")
    unit = world.groupings.units(0)[0]
    moved = pa.table({"target": [1]})
    world.statistics.observe_step(unit, [moved], StepOutput(None, None, None, None, 0), 7.0)
    world.statistics.observe_step(unit, [], StepOutput(None, None, None, None, 0), 0.5)  # of timers
    assert sum(one.seconds for one in world.end_interval().units) == pytest.approx(0.5, abs=1e-3)


def test_a_report_says_what_keys_take_that_leave_their_unit() -> None:
    world = World(SlowKey(), key_statistics_head=50)
    for _ in range(3):
        world.send(*[f"key {number}" for number in range(30)])
    report = world.end_interval()
    runner = world.runners[0]
    values = {key: value for _, state, _ in world.host.states() for key, value in state.value.items()}
    sizes = sample_sizes(runner, values)
    assert report.part_bytes[0] == pytest.approx(sizes.part, abs=2)
    [estimate] = {runner.operator.state_size({key: value}) for key, value in values.items() if len(key) == 6}
    large = report.columns.state_bytes.max()
    assert large == np.ceil(estimate * sizes.scale) != estimate
    assert KeyStatistics.from_json(json.loads(json.dumps(report.to_json()))).part_bytes == report.part_bytes


@given(BATCHES, st.dictionaries(WORDS, st.integers(0, 3)))
def test_every_row_of_an_interval_is_counted_once(batches: list[list[str | None]], table: dict[str, int]) -> None:
    world = World(table=table)
    for _ in range(2):
        for batch in batches:
            world.send(*batch)
        report = world.end_interval()
        exact = Counter(hashes_of([key for batch in batches for key in batch]))
        assert rows_by_hash(report) == {**dict.fromkeys(hashes_of(list(table)), 0), **exact}
        assert sum(unit.rows for unit in report.units) == exact.total()
        assert sum(unit.keys for unit in report.units) == len(exact)
        spent = sum(unit.seconds for unit in report.units)
        assert report.columns.seconds.sum() == pytest.approx(spent)
        assert [report.units[place].unit.number for place in report.columns.units] == world.groupings.unit_numbers(
            report.columns.hashes, 0
        ).tolist()


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 2**32))
def test_beyond_the_counters_totals_are_exact_and_errors_are_bounded(counters: int, head: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    batches = [[f"key-{key}" for key in rng.zipf(1.5, 200) % 60] for _ in range(3)]
    world = World(key_statistics_counters=counters, key_statistics_head=head)
    for batch in batches:
        world.send(*batch)
    report = world.end_interval()
    exact = Counter(hashes_of([key for batch in batches for key in batch]))
    assert sum(unit.rows for unit in report.units) == exact.total()
    found = report.columns
    assert len(found.hashes) <= head
    for key_hash, place, rows in zip(found.hashes.tolist(), found.units, found.rows.tolist(), strict=True):
        assert rows <= exact[key_hash] <= rows + report.units[place].error_rows


def test_a_heavy_key_of_the_interval_before_is_counted_exactly_whatever_comes() -> None:
    world = World(key_statistics_counters=1, key_statistics_head=1)
    world.send(*["hot"] * 100)
    world.end_interval()
    world.send(*["hot"] * 100, *(f"other-{number}" for number in range(20_000)))
    report = world.end_interval()
    assert names_of(report) == {"hot": 100}
    assert max(unit.error_rows for unit in report.units) > 0


def test_of_fast_rows_some_are_counted_which_stand_for_all() -> None:
    rng = np.random.default_rng(5)
    world = World(key_statistics_rows_per_second=100)
    batches = [[f"key-{key}" for key in rng.zipf(1.5, 2_000) % 300] for _ in range(4)]
    exact = Counter(hashes_of([key for batch in batches for key in batch]))
    reports = []
    for _ in range(3):
        for batch in batches:
            world.send(*batch)
        reports.append(world.end_interval())
    assert [report.stride for report in reports] == [1, 8, 8]  # 800 rows per second
    assert rows_by_hash(reports[0]) == exact
    for report in reports:
        assert sum(unit.rows for unit in report.units) == exact.total()
        for key_hash, rows in rows_by_hash(report).items():
            assert abs(rows - exact[key_hash]) <= 5 * np.sqrt((report.stride - 1) * exact[key_hash]) + 1
        for place, unit in enumerate(report.units):
            mine = report.columns.rows[report.columns.units == place]
            assert abs(mine.sum() - unit.rows) <= len(mine) / 2  # by rounding
    assert rows_by_hash(reports[1]) != exact
    strides = []
    for _ in range(4):
        world.send()
        strides.append(world.end_interval().stride)
    assert strides == [8, 4, 2, 1]  # the rate is remembered for a while


def test_no_row_is_counted_with_another_probability_than_others() -> None:
    counter, collector = UnitKeyCounter(10_000, 0.0), KeyCollector(["key"])
    collector.stride = 4
    for rows in [1, 2, 3, 10] * 1_000:  # sometimes none of the last rows is chosen, sometimes no row at all
        counter.add_step(rows, 0.0)
        collector.add(UnitId(0, 0), counter, [pa.table({"key": np.arange(rows)})], None)
        collector.count()
    exact = [4_000, 3_000, 2_000, *[1_000] * 7]
    counts = counter.counts()
    found = dict(zip(counts.hashes.tolist(), counts.rows.tolist(), strict=True))
    for key_hash, rows in zip(hash_keys([pa.array(range(10))]).tolist(), exact, strict=True):
        assert found[key_hash] == pytest.approx(rows, abs=5 * np.sqrt(3 * rows))


@pytest.mark.parametrize("rows", [50, 5_000], ids=["small slices", "large slices"])
def test_rows_are_counted_in_the_unit_that_they_belong_to(rows: int) -> None:
    collector = KeyCollector(["key", "other"])
    collector.stride = 4
    counters = [UnitKeyCounter(10_000, 0.0) for _ in range(3)]
    for number in (2, 0, 1, 0):
        keys = pa.chunked_array([[number] * (rows // 2), [number + 10] * (rows // 2)])
        counters[number].add_step(rows, 0.0)
        collector.add(UnitId(0, number), counters[number], [pa.table({"key": keys, "other": ["x"] * rows})], None)
    collector.count()
    for number, counter in enumerate(counters):
        counts = counter.counts()
        mine = hash_keys([pa.array([number, number + 10]), pa.array(["x", "x"])]).tolist()
        assert sorted(counts.hashes.tolist()) == sorted(mine)
        assert counts.rows.tolist() == pytest.approx([counter.rows / 2] * 2, abs=5 * np.sqrt(3 * counter.rows))
    assert set(collector.find_keys(hash_keys([pa.array([11]), pa.array(["x"])]).tolist()).values()) == {(11, "x")}


def test_a_heartbeat_does_not_grow_with_the_number_of_keys() -> None:
    def measure_text(keys: int) -> int:
        world = World(key_statistics_head=100)
        world.send(*(f"a key of some length {number:06}" for number in range(keys)))
        return len(json.dumps(encode_message(Heartbeat("n", "i", keys=world.end_interval()))))

    assert measure_text(5_000) <= 1.05 * measure_text(500)


def test_keys_of_the_table_are_reported_even_if_others_are_heavier() -> None:
    world = World(table={"guest": 2, "idle": 1}, key_statistics_head=2)
    world.take_microseconds_per_row(1)
    world.send("guest", *(f"key-{number % 50}" for number in range(500)))
    report = world.end_interval()
    found = rows_by_hash(report)
    assert len(found) <= 4
    assert [found[one] for one in hashes_of(["guest", "idle"])] == [1, 0]
    states = dict(zip(report.columns.hashes.tolist(), report.columns.state_bytes.tolist(), strict=True))
    assert states[hashes_of(["guest"])[0]] > 0


def test_what_a_unit_replays_is_not_counted() -> None:
    world = World()
    world.send("a", "b", "a")
    world.end_interval()
    [unit] = {world.groupings.unit_of(one, 0) for one in hashes_of(["a"])}
    world.host.release(ReleaseUnits(Epoch(2), (unit,), LEASE))
    world.host.drop(DropUnits(Epoch(2), (unit,)))
    world.batch = 0
    world.install([unit], reported=0, epoch=3)  # its output of batch 0 is known
    world.send("a", "a")
    world.send("a")
    assert names_of(world.end_interval()) == {"a": 1}


def test_the_counts_of_a_unit_go_with_it_and_one_that_comes_is_measured_from_then_on() -> None:
    world = World()
    [unit] = {world.groupings.unit_of(one, 0) for one in hashes_of(["a"])}
    world.statistics.measure(world.host)
    world.send("a", "a")
    world.host.release(ReleaseUnits(Epoch(2), (unit,), LEASE))
    world.host.drop(DropUnits(Epoch(2), (unit,)))
    world.now += 4
    world.statistics.measure(world.host)
    world.install([unit], through=0, reported=0, epoch=3)
    world.send("a")
    report = world.end_interval(6)
    assert names_of(report) == {"a": 1}
    assert {found.unit: found.interval_seconds for found in report.units}[unit] == 6
    assert {found.interval_seconds for found in report.units if found.unit != unit} == {10}


def test_a_report_is_of_one_interval_and_stays_until_the_next_is_over() -> None:
    world = World()
    world.send("a")
    first = world.end_interval()
    world.send("a", "a")
    assert world.end_interval(INTERVAL / 2) is first
    second = world.end_interval(INTERVAL)
    assert (second.interval, second.seconds, names_of(second)) == (1, 1.5 * INTERVAL, {"a": 2})
    assert {unit.interval_seconds for unit in second.units} == {1.5 * INTERVAL}
    world.send()
    idle = world.end_interval()
    assert (idle.interval, rows_by_hash(idle), sum(unit.rows for unit in idle.units)) == (2, {}, 0)


def test_only_the_heaviest_keys_have_names_and_names_are_short() -> None:
    world = World()
    world.send(*(f"{number}-{'x' * 300}" for number in range(500)))
    report = world.end_interval()
    assert len(report.columns.hashes) == 500
    assert 0 < len(report.names) <= 200
    assert max(map(len, report.names.values())) == 100


def test_nothing_is_counted_where_the_setting_says_so() -> None:
    world = World(key_statistics="off")
    world.send("a")
    world.now += INTERVAL
    world.statistics.measure(world.host)
    assert world.statistics.report is None


def test_the_time_of_a_key_is_measured_where_the_operator_is_called_key_by_key() -> None:
    world = World(SlowKey())
    for _ in range(3):
        world.send("slow", *["quick"] * 50, "other")
    report = world.end_interval()
    slow = list(report.names.values()).index("slow")
    assert names_of(report) == {"slow": 3, "quick": 150, "other": 3}
    assert report.columns.seconds[slow] >= 0.015
    assert report.columns.seconds[slow] > 0.5 * sum(unit.seconds for unit in report.units)
    assert report.columns.seconds.sum() == pytest.approx(sum(unit.seconds for unit in report.units))


def test_the_state_of_a_key_is_measured_by_the_operator_where_the_state_is_by_key() -> None:
    world = World(SlowKey())
    world.send("small", *["large"] * 1_000)
    report = world.end_interval()
    sizes = {name: int(report.columns.state_bytes[place]) for place, name in report.names.items()}
    assert sizes["large"] >= 1_000 > sizes["small"] > 0
    assert sum(sizes.values()) == pytest.approx(sum(unit.state_bytes for unit in report.units), rel=0.1)


def test_keyed_columns_with_more_key_columns_are_divided_by_their_rows() -> None:
    world = World(Pairs())
    world.send(*["many"] * 50, *["one"] * 50)
    report = world.end_interval()
    sizes = {name: int(report.columns.state_bytes[place]) for place, name in report.names.items()}
    assert sizes["many"] > 20 * sizes["one"] > 0


def test_rows_of_an_older_type_of_a_key_column_are_counted_with_the_others() -> None:
    counter, collector = UnitKeyCounter(100, 0.0), KeyCollector(["key"])
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        counter.add_step(1, 0.0)
        collector.add(UnitId(0, 0), counter, [pa.table({"key": pa.array(["a"], kind)})], None)
    collector.count()
    assert counter.counts().rows.tolist() == [3]
    assert collector.find_keys(hashes_of(["a", "b"])) == {hashes_of(["a"])[0]: "a"}
