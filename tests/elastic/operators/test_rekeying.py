"""Keys move between units in the tester: results and states are the same as if no key had moved."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from elastic.errors import InvalidJob, InvalidKey
from elastic.operators import (
    Context,
    CountByKey,
    KeyedColumns,
    KeyedOperator,
    Operator,
    Stage,
    State,
    Timer,
    ValueState,
)
from elastic.operators.stateless import stateless
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Rekey, Scale
from elastic.routing import hash_keys
from tests.elastic.operators.samples import INPUT, Halving, Sessions, batches, double

TASKS = 6
KEYS = "abcdefg"


class Windows(Operator):
    """Sums by key and window of ten milliseconds of event time; a key's window is emitted by a timer of that key."""

    output_schema = "key string, window_end long, total long"

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("window_end long, key string", {"total": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> None:
        rows = rows.filter(pa.array([not late for late in context.late(rows, "n").to_pylist()], pa.bool_()))
        numbers = rows["n"].to_numpy()
        ends = numbers - numbers % 10 + 10
        state.value.count("total", state.value.rows_for([pa.array(ends), rows["key"]]), numbers)
        for end, key in zip(ends.tolist(), rows["key"].to_pylist(), strict=True):
            context.set_timer(end, "event", str(end), key=key)

    def handle_timer(self, timer: Timer, state: State, _context: Context) -> Any:
        [row] = state.value.find([[timer.at_ms], [timer.key]])
        assert row >= 0, "a timer without the state of its key"
        yield state.value.to_table(np.array([row])).select(["key", "window_end", "total"])
        state.value.keep(np.arange(len(state.value)) != row)

    def lookup(self, value: KeyedColumns, key: tuple[Any, ...]) -> list[dict[str, Any]]:
        rows = [row for row in value.to_table().to_pylist() if (row["key"],) == key]
        return sorted(rows, key=lambda row: int(row["window_end"]))

    def part(self, state: State, hashes: NDArray[np.int64]) -> Any:
        return super().part(state, hashes)

    def join(self, state: State, part: Any) -> None:
        super().join(state, part)


class Remembering(Operator):
    """Remembers all rows as an Arrow table that is replaced, never changed, and tells how many there are of a key."""

    output_schema = "key string, rows long"

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Iterator[Any]:
        state.value = rows if state.value is None else pa.concat_tables([state.value, rows])
        known = state.value["key"].to_pylist()
        yield [{"key": key, "rows": known.count(key)} for key in sorted(set(rows["key"].to_pylist()))]

    def part(self, state: State, hashes: NDArray[np.int64]) -> pa.Table | None:
        if state.value is None:
            return None
        mask = np.isin(hash_keys([state.value["key"]]), hashes)
        parted = state.value.filter(pa.array(mask))
        state.value = state.value.filter(pa.array(~mask))
        return parted

    def join(self, state: State, part: pa.Table | None) -> None:
        if part is not None:
            state.value = part if state.value is None else pa.concat_tables([state.value, part])


class Mean(KeyedOperator):
    """A value that is cleared again, and rows to the next stage."""

    output_schema = "key string, n long"

    def handle_key(self, key: Any, rows: Any, state: ValueState, _context: Context) -> Iterator[Any]:
        seen = [*(state.get() or []), *(row["n"] for row in rows)]
        if len(seen) < 3:
            state.update(seen)
            return
        state.clear()
        yield {"key": key, "n": sum(seen) // len(seen)}


PIPELINES: dict[str, list[Stage]] = {
    "count": [Stage(CountByKey(), grouping="table")],
    "sessions": [Stage(Sessions(), grouping="table")],
    "windows": [Stage(Windows(), grouping="table")],
    "feedback": [Stage(Halving(), grouping="table")],
    "declared": [Stage(Remembering(), grouping="table")],
    "three stages": [
        Stage(stateless(double, INPUT), grouping="table"),
        Stage(Mean(), grouping="table"),
        Stage(CountByKey("means"), grouping="table"),
    ],
}


def new_tester(name: str, **options: Any) -> OperatorTester:
    return OperatorTester(PIPELINES[name], key="key", schema=INPUT, tasks=TASKS, watermark=("n", 5), **options)


def by_key(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of a key in their order; the order of different keys depends on their units."""
    found = defaultdict(list)
    for row in rows:
        found[row["key"]].append(row)
    return dict(found)


def states_of(tester: OperatorTester) -> list[list[str]]:
    """The state of every stage, of all its units together, checking that each unit has only its own keys."""
    cluster, stages = tester._running, []
    for number, runner in enumerate(tester._runners):
        rows = []
        for unit in cluster.routing.units(number):
            state = cluster.state(unit)
            table = runner.state_rows(state)
            if table.num_rows and "key" in table.schema.names:
                placed = cluster.routing.unit_numbers(hash_keys([table["key"]]), number)
                assert set(placed.tolist()) == {unit.number}
            rows += [str(sorted(row.items())) for row in table.to_pylist()]
            for kind in ("event", "processing"):
                rows += [f"{kind} timer {item}" for item in state.timers.items(kind)]
        stages.append(sorted(rows))
    return stages


rekeys = st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(0, TASKS - 1), max_size=5)


@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_moving_keys_changes_neither_results_nor_states(name: str, data: st.DataObject) -> None:
    stages = [stage.name for stage in new_tester(name)._stages]
    still, moving = new_tester(name), new_tester(name, snapshot_every=data.draw(st.integers(1, 4)))
    for batch in [*data.draw(batches), [], [], []]:
        for change in data.draw(st.lists(st.sampled_from(["rekey", "scale", "crash"]), max_size=4)):
            if change == "rekey":
                moving.run([Rekey(data.draw(rekeys), data.draw(st.sampled_from(stages)))])
            elif change == "scale":
                moving.run([Scale(data.draw(st.integers(1, 4)))])
            elif moving._cluster is not None:
                moving.run([Crash(data.draw(st.sampled_from(moving.assignment.nodes)))])
        assert by_key(moving.run([batch])) == by_key(still.run([batch]))
    for node in moving.assignment.nodes:
        moving.run([Crash(node)])
    assert states_of(moving) == states_of(still)
    for stage in stages[-2:]:
        assert [moving.state(key, stage) for key in KEYS] == [still.state(key, stage) for key in KEYS]


ROWS = [{"key": key, "n": 1} for key in KEYS]


def units_with_rows(tester: OperatorTester) -> set[Any]:
    cluster = tester._running
    return {unit for unit in cluster.routing.units(0) if tester._runners[0].state_rows(cluster.state(unit)).num_rows}


def test_a_key_lives_among_the_guests_of_its_task_until_it_goes_home() -> None:
    tester = new_tester("count")
    tester.run([ROWS])
    home = units_with_rows(tester)
    assert not any(unit.guests for unit in home)
    tester.run([Rekey({"a": 4, "b": 5})])
    assert {unit.task for unit in units_with_rows(tester) if unit.guests} == {4, 5}
    tester.run([Rekey({"a": 5}), ROWS])
    assert {unit.task for unit in units_with_rows(tester) if unit.guests} == {5}
    assert (tester.state("a"), tester.state("c")) == (2, 2)
    tester.run([Rekey({"a": None, "b": None, "c": None})])
    assert units_with_rows(tester) == home
    assert [tester.state(key) for key in KEYS] == [2] * len(KEYS)


def test_units_may_exchange_keys() -> None:
    tester = new_tester("count")
    tester.run([Rekey({"a": 0, "b": 1}), [{"key": "a", "n": 1}] * 3, Rekey({"a": 1, "b": 0}), ROWS])
    assert (tester.state("a"), tester.state("b")) == (4, 1)


@pytest.mark.parametrize("snapshot_every", [1, 2, 3, 100])
def test_a_crash_after_keys_moved_repeats_the_move(snapshot_every: int) -> None:
    tester = new_tester("sessions", snapshot_every=snapshot_every)
    tester.run([ROWS, Rekey(dict.fromkeys(KEYS, 3)), ROWS, Rekey({"a": 2, "b": None})])
    before = states_of(tester)
    for _ in range(2):
        for node in tester.assignment.nodes:
            tester.run([Crash(node)])
        assert states_of(tester) == before
    emitted = tester.run([InputBatch([], timestamp_ms=60_000)])
    assert sorted(emitted, key=str) == [{"key": key, "total": 2, "rows": 2} for key in KEYS]


def test_a_timer_fires_where_its_key_is() -> None:
    tester = new_tester("sessions")
    emitted = tester.run([ROWS, Rekey({"a": 1}), Scale(3), [], [], []])
    assert by_key(emitted) == {key: [{"key": key, "total": 1, "rows": 1}] for key in KEYS}


def test_keys_of_several_columns_move_too() -> None:
    tester = OperatorTester(Stage(CountByKey(), grouping="table"), key=["a", "b"], tasks=4)
    rows = [{"a": "x", "b": 1}, {"a": "x", "b": None}, {"a": "y", "b": 1}]
    tester.run([rows, Rekey({("x", None): 3, ("x", 1): 2}), rows])
    assert [tester.state(key) for key in (("x", 1), ("x", None), ("y", 1), ("y", None))] == [2, 2, 2, 0]


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (Rekey({"a": TASKS}), InvalidJob, "key 'a' cannot move to task 6. Give a task from 0 to 5, or None"),
        (Rekey({"a": -1}), InvalidJob, "key 'a' cannot move to task -1"),
        (Rekey({"a": "1"}), InvalidJob, "key 'a' cannot move to task '1'"),  # type: ignore[dict-item]
        (Rekey({"a": True}), InvalidJob, "key 'a' cannot move to task True"),
        (Rekey({"a": 1.5}), InvalidJob, "key 'a' cannot move to task 1.5"),  # type: ignore[dict-item]
        (Rekey({"a": 1, 7: 1}), InvalidKey, "7 is not a string"),
        (Rekey({("a", "b"): 1}), InvalidKey, "string"),
        (Rekey({"a": 1}, stage="Nothing"), InvalidJob, "there is no stage 'Nothing'. Name one of 'CountByKey'"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused_and_changes_nothing(
    item: Rekey, error: type[Exception], message: str
) -> None:
    tester = new_tester("count")
    tester.run([ROWS])
    routing, states = tester._running.routing, states_of(tester)
    with pytest.raises(error, match=message):
        tester.run([item])
    assert (tester._running.routing, states_of(tester)) == (routing, states)


def test_keys_of_a_stage_that_is_grouped_by_hash_do_not_move() -> None:
    for pipeline in (CountByKey(), [CountByKey("rows"), Stage(CountByKey(), grouping="table")]):
        tester = OperatorTester(pipeline, key="key", schema=INPUT)  # type: ignore[arg-type]
        tester.run([ROWS])
        first = tester._stages[0].name
        with pytest.raises(InvalidJob, match=f"stage '{first}' is grouped by hash, so single keys of it cannot move"):
            tester.run([Rekey({"a": 1}, stage=first)])


def test_a_stage_that_does_not_exist_has_no_state() -> None:
    tester = new_tester("count")
    tester.run([ROWS])
    with pytest.raises(InvalidJob, match="there is no stage 'Nothing'"):
        tester.state("a", "Nothing")
