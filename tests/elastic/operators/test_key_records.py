"""Keys as records: orders, parts, and that no row of a user is taken for either."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.operators import Context, CountByKey, KeyedOperator, Operator, State, ValueState
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.key_records import (
    are_orders,
    are_parts,
    log_orders,
    log_parts,
    measure_records,
    without_kind,
)
from elastic.operators.key_sizes import AS_ESTIMATED, sample_sizes
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.routing import KeyOrders, hash_key
from storage import Secret
from storage.state import LOGGED_BYTES, InputLog, LogRef, UnitId
from storage.stores.memory import MemoryStore

SCHEMA = pa.schema([("key", pa.int64())])
TARGETS = [UnitId(0, task, guests=True).number for task in (1, 2)]
COUNTS = st.dictionaries(st.integers(0, 20), st.integers(1, 3), max_size=10)


def new_runner() -> StageRunner:
    return StageRunner(CountByKey(), key=["key"], input_schema=SCHEMA, name="count")


def moment_at(round_: int) -> Moment:
    return Moment(UnitId(0, 0), 3, round_, 1_000, None, None)


def count(runner: StageRunner, counts: dict[int, int]) -> UnitState:
    state = runner.new_state()
    rows = pa.table({"key": [key for key, times in counts.items() for _ in range(times)]}, schema=SCHEMA)
    runner.step(state, [runner.combine(rows)], moment_at(0))
    return state


def part(runner: StageRunner, state: UnitState, tasks: dict[int, int]) -> StepOutput:
    hashes = np.array([hash_key(key) for key in tasks], np.int64)
    orders = log_orders({0: KeyOrders(hashes, np.array([TARGETS[task] for task in tasks.values()], np.int64))})
    return runner.step(state, [orders[0]], moment_at(1))


def forge_orders() -> pa.Table:
    """Return a row of a user with the metadata of orders."""
    orders = log_orders({0: KeyOrders(np.array([1]), np.array([2]))})[0]
    rows = new_runner().combine(pa.table({"key": [1]}, schema=SCHEMA))
    return rows.replace_schema_metadata(orders.schema.metadata)


def pass_through_log(parts: list[pa.Table]) -> dict[int, pa.Table]:
    log = InputLog(MemoryStore(), Secret.of("a secret of these tests"), "job")
    return log.read(log.append_as(LogRef.new(3, 2, 0), log_parts(parts)), TARGETS)


def counts_of(runner: StageRunner, state: UnitState) -> dict[int, int]:
    return {row["key"]: row["count"] for row in runner.state_rows(state).to_pylist()}


@given(COUNTS, st.dictionaries(st.integers(0, 20), st.integers(0, 1), min_size=1, max_size=8), COUNTS)
def test_ordered_keys_leave_and_join_their_targets(
    held: dict[int, int], tasks: dict[int, int], at_target: dict[int, int]
) -> None:
    runner = new_runner()
    source = count(runner, held)
    output = part(runner, source, tasks)
    assert output.rows == 0
    assert output.parts is not None
    assert counts_of(runner, source) == {key: times for key, times in held.items() if key not in tasks}
    records = pass_through_log([output.parts])
    for number, target in enumerate(TARGETS):
        arriving = {key: times for key, times in held.items() if tasks.get(key) == number}
        before = {key: times for key, times in at_target.items() if key not in held}
        state = count(runner, before)
        if target in records:
            joined = runner.step(state, [records[target]], moment_at(2))
            assert (joined.rows, joined.parts) == (0, None)
        assert counts_of(runner, state) == {**before, **arriving}


def test_orders_and_parts_pass_through_the_log() -> None:
    log = InputLog(MemoryStore(), Secret.of("a secret of these tests"), "job")
    runner = new_runner()
    orders = log_orders({0: KeyOrders(np.array([hash_key(1)]), np.array([TARGETS[0]]))})
    ref = log.append_as(LogRef.new(3, 1, 0), orders)
    [read] = log.read(ref, [0]).values()
    assert are_orders([read])
    assert not are_parts([read])
    output = runner.step(count(runner, {1: 2, 2: 1}), [read], moment_at(1))
    assert output.parts is not None
    [read] = pass_through_log([output.parts]).values()
    assert are_parts([read])
    assert not are_orders([read])
    state = runner.new_state()
    runner.step(state, [read], moment_at(2))
    assert counts_of(runner, state) == {1: 2}


def test_parts_that_an_older_release_logged_as_a_table_join() -> None:
    runner = new_runner()
    output = part(runner, count(runner, {1: 2, 2: 1}), {1: 0})
    assert output.parts is not None
    assert are_parts([output.parts])
    state = count(runner, {3: 1})
    runner.step(state, [output.parts], moment_at(2))
    assert counts_of(runner, state) == {1: 2, 3: 1}


def test_parts_of_several_units_for_one_target_join_in_their_order() -> None:
    runner = new_runner()
    outputs = [part(runner, count(runner, {key: key}), {key: 0}).parts for key in (1, 2, 3)]
    [read] = pass_through_log([one for one in outputs if one is not None]).values()
    state = runner.new_state()
    runner.step(state, [read], moment_at(2))
    assert counts_of(runner, state) == {1: 1, 2: 2, 3: 3}


def test_parts_of_several_nodes_for_one_target_join_in_their_order() -> None:
    runner = new_runner()
    outputs = [part(runner, count(runner, {key: key}), {key: 0}).parts for key in (1, 2, 3)]
    read = [table for one in outputs if one is not None for table in pass_through_log([one]).values()]
    state = runner.new_state()
    runner.step(state, read, moment_at(2))
    assert list(counts_of(runner, state).items()) == [(1, 1), (2, 2), (3, 3)]


class Texts(KeyedOperator):
    """Keeps a value for every key."""

    def handle_key(self, key: int, rows: list[dict[str, int]], state: ValueState, _: Context) -> None:
        """Tests fill the state themselves."""


class NewerTexts(Texts):
    """Keeps values that an older version kept without brackets."""

    version = "2"

    def upgrade(self, old_version: str, value: str) -> str:
        return f"({value} of {old_version})"


@pytest.mark.parametrize("is_logged", [True, False])
def test_parts_of_an_older_version_are_upgraded_when_they_join(is_logged: bool) -> None:
    older, newer = runner_of(Texts()), runner_of(NewerTexts())
    orders = log_orders({0: KeyOrders(np.array([hash_key(1)]), np.array([TARGETS[0]]))})
    parted = older.step(UnitState({1: "text"}), [orders[0]], moment_at(1)).parts
    assert parted is not None
    [read] = pass_through_log([parted]).values() if is_logged else [parted]
    state = newer.new_state()
    newer.step(state, [read], moment_at(2))
    assert state.value == {1: f"(text of {Texts.version})"}


def runner_of(operator: Operator) -> StageRunner:
    return StageRunner(operator, key=["key"], input_schema=SCHEMA, name="stage")


@pytest.mark.parametrize("keys", [1, 10, 100])
@pytest.mark.parametrize("value_bytes", [100, 4_000])
def test_the_log_has_what_a_plan_counts(keys: int, value_bytes: int) -> None:
    """Of values that do not compress, since plans do not know how well the others do."""
    runner, units = runner_of(Texts()), 5
    records, chance = measure_records(runner), Random(keys)  # noqa: S311 - of no influence on results
    states = [UnitState({key: chance.randbytes(value_bytes) for key in range(n, keys + n)}) for n in range(units)]
    counted = sum(runner.operator.state_size(state.value) for state in states)
    parts = []
    for number, state in enumerate(states):
        hashes = np.array([hash_key(key) for key in state.value], np.int64)
        orders = log_orders({number: KeyOrders(hashes, np.full(len(hashes), TARGETS[number % 2]))})[number]
        parts.append(runner.step(state, [orders], moment_at(1)).parts)
    log = InputLog(MemoryStore(), Secret.of("a secret of these tests"), "job")
    stored = log.append_as(LogRef.new(3, 2, 0), log_parts([one for one in parts if one is not None])).size
    planned = counted + records.node + 2 * records.target + units * records.pair
    assert planned / 1.08 <= stored <= planned * 1.01


MAKERS: dict[str, Callable[[Random], Any]] = {
    "bytes": lambda chance: chance.randbytes(400),
    "numbers": lambda chance: chance.random(),
    "lists of integers": lambda chance: [chance.randrange(2**40) for _ in range(100)],
    "records": lambda chance: {"name": str(chance.random()), "last": [chance.random() for _ in range(20)]},
    "arrays": lambda chance: np.array([chance.random() for _ in range(200)]),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("keys_of_a_part", [1, 2, 25])
def test_sampled_sizes_are_what_parts_take(kind: str, keys_of_a_part: int) -> None:
    runner, chance = runner_of(Texts()), Random(7)  # noqa: S311 - of no influence on results
    values = {key: MAKERS[kind](chance) for key in range(10**6, 10**6 + 100)}
    sizes = sample_sizes(runner, values)
    records = measure_records(runner).with_part(sizes.part)
    parts = []
    for number in range(100 // keys_of_a_part):
        state = UnitState({10**6 + key: values[10**6 + key] for key in range(100) if key // keys_of_a_part == number})
        hashes = np.array([hash_key(key) for key in state.value], np.int64)
        orders = log_orders({number: KeyOrders(hashes, np.full(len(hashes), TARGETS[0]))})[number]
        parts.append(runner.step(state, [orders], moment_at(1)).parts)
    log = InputLog(MemoryStore(), Secret.of("a secret of these tests"), "job", compression="none")
    stored = log.append_as(LogRef.new(3, 2, 0), log_parts([one for one in parts if one is not None])).size
    estimated = sum(runner.operator.state_size({key: value}) for key, value in values.items())
    planned = sizes.scale * estimated + records.node + records.target + len(parts) * records.pair
    assert planned / 1.01 - 4 * len(parts) - 50 <= stored <= planned * 1.01  # small parts have shorter headers


def test_states_that_are_large_few_or_cannot_be_stored_are_not_sampled() -> None:
    runner = runner_of(Texts())
    for values in ({}, {1: "text"}, {1: bytes(10**6), 2: bytes(10**6), 3: "text"}, {1: open, 2: (one for one in "")}):
        assert sample_sizes(runner, values) == AS_ESTIMATED
    some = {key: Random(key).randbytes(100_000) for key in range(9)}  # noqa: S311 - of no influence on results
    assert sample_sizes(runner, some) == sample_sizes(runner, {key: some[key] for key in range(2)}) != AS_ESTIMATED
    large = sample_sizes(runner, {0: bytes(10**6), **{key: bytes(100) for key in range(1, 9)}})
    assert large == sample_sizes(runner, {key: bytes(100) for key in range(1, 9)}) != AS_ESTIMATED


def test_a_part_takes_what_was_measured_unless_a_part_without_keys_takes_more() -> None:
    records = measure_records(new_runner())
    assert records.with_part(10.0) == records
    assert records.with_part(5_000.0) == records._replace(pair=5_006.0)


def test_a_part_of_columns_counts_more_than_one_of_single_values() -> None:
    assert measure_records(new_runner()).pair > measure_records(runner_of(Texts())).pair + 200


def test_an_operator_without_a_state_before_it_is_opened_counts_as_well() -> None:
    class LateOperator(Operator):
        def initial_state(self) -> object:
            raise RuntimeError("not open")

        def handle_batch(self, rows: pa.Table, state: State, context: Context) -> None:
            """Tests do not call it."""

    records = measure_records(runner_of(LateOperator()))
    assert 0 < records.pair < records.target


def test_rows_of_a_user_are_never_taken_for_logged_parts() -> None:
    rows = pa.table([pa.array([b"harm"], pa.large_binary())], schema=LOGGED_BYTES)
    assert are_parts([rows])
    assert not are_parts([without_kind(rows)])


def test_rows_of_a_user_are_never_taken_for_orders_or_parts() -> None:
    forged = forge_orders()
    assert are_orders([forged])
    assert not are_orders([without_kind(forged)])
    rows = pa.table({"key": [1]}, schema=SCHEMA.with_metadata({"made by": "the user"}))
    assert without_kind(rows) is rows


def test_rows_of_round_0_are_rows_whatever_their_metadata_says() -> None:
    runner = new_runner()
    state = runner.new_state()
    assert runner.step(state, [forge_orders()], moment_at(0)).rows == 1
    assert counts_of(runner, state) == {1: 1}


@pytest.mark.parametrize("slices", [[], [pa.table({"key": [1]})]])
def test_rows_without_metadata_are_rows(slices: list[pa.Table]) -> None:
    assert not are_orders(slices)
    assert not are_parts(slices)
