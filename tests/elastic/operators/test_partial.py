"""Split keys in one process: the operator behind a partial stage emits what it would emit for whole keys."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from elastic.errors import CombineFailed, InvalidJob, InvalidSetting, NotAnOperator, UnmergeableOperator
from elastic.operators import Context, CountByKey, KeyedOperator, Operator, Stage, State, ValueState, partial, stateless
from elastic.operators.context import Moment
from elastic.operators.partial import PartialOperator, parse_every
from elastic.operators.stages import build_runners, build_stages
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Rekey, Scale
from elastic.routing import hash_key
from storage.state import UnitId

SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64())])
BATCHES = st.lists(st.lists(st.sampled_from("aaaaaabbc"), max_size=12), min_size=1, max_size=6)


class Highest(KeyedOperator):
    """Finds the highest value of each key, and how many rows there were."""

    output_schema = "key string, highest long, rows long"

    def combine(self, rows: pa.Table) -> pa.Table:
        ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        return self.merge(pa.table({"key": rows["key"], "highest": rows["value"], "rows": ones}))

    def merge(self, partials: pa.Table) -> pa.Table:
        merged = partials.group_by("key", use_threads=False).aggregate([("highest", "max"), ("rows", "sum")])
        return merged.rename_columns(["key", "highest", "rows"])

    def initial_state(self) -> tuple[int, int]:
        return (-1, 0)

    def handle_key(self, key: Any, rows: list[Any], state: ValueState, _: Context) -> tuple[Any, int, int]:
        highest, known = state.get()
        state.update((max(highest, *(row["highest"] for row in rows)), known + sum(row["rows"] for row in rows)))
        return (key, *state.get())


OPERATORS: dict[str, Callable[[], Operator]] = {"columns": CountByKey, "keyed": Highest}


def rows_of(keys: list[str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": number} for number, key in enumerate(keys)]


def new_tester(stages: Any, **options: Any) -> OperatorTester:
    return OperatorTester(stages, key="key", schema=SCHEMA, tasks=6, **options)


def by_batch(tester: OperatorTester, scenario: list[Any]) -> list[Counter[str]]:
    """Return what each batch emits, in any order."""
    found = []
    for item in scenario:
        if isinstance(item, Scale):
            tester.run([item])
            tester.run([Crash(tester.assignment.nodes[-1])])
        else:
            found.append(Counter(str(sorted(row.items())) for row in tester.run([item])))
    return found


def disturb(data: st.DataObject, batches: list[Any]) -> list[Any]:
    """Let the number of nodes change after each batch; `by_batch` then lets one of them crash."""
    return [item for batch in batches for item in (batch, Scale(data.draw(st.integers(1, 5))))]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("split", ["all", "head", "none"])
@settings(max_examples=settings().max_examples // 8)
@given(data=st.data())
def test_with_every_batch_results_are_those_of_whole_keys(name: str, split: str, data: st.DataObject) -> None:
    batches = [rows_of(keys) for keys in data.draw(BATCHES)]
    whole, parted = new_tester(OPERATORS[name]()), new_tester(partial(OPERATORS[name](), split=split), snapshot_every=3)
    assert by_batch(parted, disturb(data, batches)) == by_batch(whole, batches)
    assert [parted.state(key) for key in "abc"] == [whole.state(key) for key in "abc"]
    assert [parted.state(key, fresh=True) for key in "abc"] == [whole.state(key) for key in "abc"]


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=settings().max_examples // 8)
@given(data=st.data())
def test_with_an_interval_results_are_those_of_all_rows_of_the_interval_at_once(name: str, data: st.DataObject) -> None:
    batches = data.draw(BATCHES)
    times = sorted(data.draw(st.lists(st.integers(0, 50), min_size=len(batches), max_size=len(batches))))
    timed: list[Any] = [InputBatch(rows_of(keys), 1_000 * at) for keys, at in zip(batches, times, strict=True)]
    whole, parted = new_tester(OPERATORS[name]()), new_tester(partial(OPERATORS[name](), "10 seconds"))
    expected: list[Counter[str]] = []
    held: list[Any] = []
    interval = 0
    for keys, at in zip(batches, times, strict=True):
        arriving, held = (held, rows_of(keys)) if at // 10 > interval else ([], held + rows_of(keys))
        interval = at // 10
        expected += by_batch(whole, [arriving])
    assert by_batch(parted, disturb(data, timed)) == expected
    assert [parted.state(key) for key in "abc"] == [whole.state(key) for key in "abc"]
    whole.run([held])
    assert [parted.state(key, fresh=True) for key in "abc"] == [whole.state(key) for key in "abc"]


def test_a_hot_key_is_held_by_one_task_of_every_node_and_by_one_behind() -> None:
    tester = new_tester(partial(CountByKey(), "1 hour"), nodes=3)
    tester.run([rows_of(["a"] * 300)])
    cluster = tester._running
    holding = [unit for unit in cluster.routing.units(0) if cluster.state(unit).value.num_rows]
    assert len({cluster.routing.owners(unit) for unit in holding}) == len(holding) == 3
    assert [cluster.state(unit).value["count"].to_pylist() for unit in holding] == [[100]] * 3
    tester.run([InputBatch([], 3_600_000)])
    assert tester.state("a") == tester.state("a", fresh=True) == 300
    assert not any(cluster.state(unit).value.num_rows for unit in holding)


def test_partials_that_nothing_follows_are_emitted_by_a_timer() -> None:
    tester = new_tester(partial(CountByKey(), "10 seconds"))
    assert tester.run([InputBatch(rows_of(["a"]), 9_000), InputBatch([], 9_999)]) == []
    assert tester.run([InputBatch([], 10_000)]) == [{"key": "a", "count": 1}]
    assert tester.run([InputBatch([], 30_000)]) == []


def test_rows_that_come_when_an_interval_ends_are_of_the_next_one() -> None:
    tester = new_tester(partial(CountByKey(), "10 seconds"), nodes=1)
    emitted = [tester.run([InputBatch(rows_of(["a"]), at)]) for at in (9_000, 10_000, 20_000)]
    assert emitted == [[], [{"key": "a", "count": 1}], [{"key": "a", "count": 2}]]


def test_a_task_knows_when_it_emitted_partials_last() -> None:
    tester = new_tester(partial(CountByKey(), "10 seconds"), nodes=1)
    found = []
    for at in (0, 5_000, 12_000, 21_000):
        tester.run([InputBatch(rows_of(["a"] * 3), at)])
        runner, cluster = tester._runners[0], tester._running
        unit = cluster.routing.groupings.unit_of(hash_key("a"), 0)
        held = runner.lookup(cluster.state(unit), "a")
        found.append((held.flushed, held.partials["count"].to_pylist()))
    assert found == [(-1, [3]), (-1, [6]), (2, [3]), (3, [3])]


def test_a_longer_pipeline_has_partial_stages_anywhere() -> None:
    stages = [stateless(lambda rows: rows, SCHEMA), *partial(Stage(CountByKey(), name="counts")), CountByKey("batches")]
    tester = new_tester(stages, nodes=3)
    tester.run([rows_of(list("aab")), Scale(2), rows_of(list("ab"))])
    assert [stage.name for stage in tester._stages] == ["<lambda>", "partial-counts", "counts", "CountByKey"]
    assert [tester.state(key, "counts") for key in "ab"] == [3, 2]
    assert [tester.state(key) for key in "ab"] == [2, 2]


def test_keys_of_the_operator_behind_may_move() -> None:
    tester = new_tester(partial(Stage(CountByKey(), name="counts", grouping="table")))
    tester.run([rows_of(list("aab")), Rekey({"a": 5, "b": 0}), rows_of(list("ab")), Crash("node-1")])
    assert [tester.state(key) for key in "ab"] == [3, 2]
    with pytest.raises(InvalidJob, match="grouped by partial"):
        tester.run([Rekey({"a": 1}, "partial-counts")])


def test_merged_counts_are_the_sums_of_counts() -> None:
    [runner] = build_runners(build_stages(CountByKey(), "key"), SCHEMA)
    partials = pa.table({"key": ["a", "b", "a"], "count": [2, 3, 5]})
    assert runner.operator.merge(partials).to_pylist() == [{"key": "a", "count": 7}, {"key": "b", "count": 3}]


class WithoutMerge(CountByKey):
    merge = Operator.merge


class WithoutCombine(CountByKey):
    combine = Operator.combine


class WithTimer(CountByKey):
    def handle_timer(self, *_: Any) -> None: ...


class WithExpiry(Highest):
    def handle_expired(self, *_: Any) -> None: ...


class ToItself(CountByKey):
    emits = frozenset({"self"})


@pytest.mark.parametrize(
    ("operator", "obstacle"),
    [
        (WithoutMerge(), "does not define merge"),
        (WithoutCombine(), "does not define combine"),
        (Operator(), "does not define combine"),
        (WithTimer(), "timers"),
        (WithExpiry(), "timers"),
        (ToItself(), "to itself"),
    ],
)
def test_an_operator_whose_keys_cannot_be_split_is_refused_at_once(operator: Operator, obstacle: str) -> None:
    with pytest.raises(UnmergeableOperator, match=obstacle) as caught:
        partial(operator)
    assert caught.value.operator == type(operator).__name__
    assert "needs a combine()" in str(caught.value)


class NeedsRows(CountByKey):
    def combine(self, rows: pa.Table) -> pa.Table:
        return rows.slice(0, 1 // rows.num_rows)


class Listed(CountByKey):
    def combine(self, rows: pa.Table) -> Any:
        return rows.to_pylist()


class WithoutKey(CountByKey):
    def combine(self, rows: pa.Table) -> pa.Table:
        return rows.select(["value"])


class OtherKey(CountByKey):
    def combine(self, rows: pa.Table) -> pa.Table:
        return super().combine(rows).set_column(0, "key", pa.nulls(rows.num_rows, pa.int64()))


class OtherColumns(CountByKey):
    def merge(self, partials: pa.Table) -> pa.Table:
        return partials.rename_columns(["key", "rows"])


class ListedMerge(CountByKey):
    def merge(self, partials: pa.Table) -> Any:
        return partials.to_pylist()


class MergeNeedsRows(CountByKey):
    def merge(self, partials: pa.Table) -> pa.Table:
        return partials.slice(0, 1 // partials.num_rows)


@pytest.mark.parametrize(
    ("operator", "obstacle"),
    [
        (NeedsRows(), "without rows"),
        (Listed(), "a list instead"),
        (WithoutKey(), r"combine\(\) does not keep the key column 'key'"),
        (OtherKey(), r"combine\(\) does not keep the key column 'key'"),
        (OtherColumns(), r"merge\(\) returns the columns \['key', 'rows'\]"),
        (ListedMerge(), r"merge\(\) returned a list instead"),
        (MergeNeedsRows(), r"merge\(\) raised .* without rows"),
    ],
)
def test_an_operator_whose_partials_have_no_schema_is_refused_before_the_job_starts(
    operator: Operator, obstacle: str
) -> None:
    with pytest.raises(UnmergeableOperator, match=obstacle):
        build_runners(build_stages(partial(operator), "key"), SCHEMA)


@pytest.mark.parametrize("every", ["", "batch", "2 batches", "10", "0 seconds", "999999999999 days", 10, None, ["1 s"]])
def test_an_invalid_interval_is_refused(every: Any) -> None:
    with pytest.raises(InvalidSetting) as caught:
        partial(CountByKey(), every)
    assert caught.value.name == "every"


def test_intervals_are_batches_or_durations() -> None:
    assert (parse_every("1 batch"), parse_every("10 seconds"), parse_every("1.5m")) == (None, 10_000, 90_000)


def test_other_bad_use_is_refused() -> None:
    with pytest.raises(NotAnOperator):
        partial(CountByKey)  # type: ignore[arg-type]
    unknown: list[Any] = ["tail", None, ["all"]]
    for split in unknown:
        with pytest.raises(InvalidJob, match="Use one of 'all'"):
            partial(CountByKey(), split=split)
    with pytest.raises(InvalidJob, match=r"Use partial\(operator\)"):
        Stage(CountByKey(), grouping="partial")
    with pytest.raises(InvalidJob, match="several tasks"):
        Stage(PartialOperator(CountByKey(), None))
    with pytest.raises(InvalidJob, match=r"'partial-CountByKey' splits keys and has none. Give .* a key"):
        build_runners(build_stages(partial(CountByKey()), ()), SCHEMA)
    first, second = partial(Stage(CountByKey(), "key"))
    refused: list[Any] = [[first], [second, first], [first, CountByKey()], [first, Stage(second.operator, "value")]]
    for stages in refused:
        with pytest.raises(InvalidJob, match="must be followed by its own operator"):
            build_stages(stages, "key")
    assert len(build_stages([first, second], "key")) == 2
    tester = new_tester(CountByKey())
    tester.run([rows_of(["a"])])
    with pytest.raises(InvalidJob, match="no partial stage"):
        tester.state("a", fresh=True)


class BadMerge(CountByKey):
    def merge(self, partials: pa.Table) -> pa.Table:
        if partials.num_rows == 3:
            raise ValueError("three are too many")
        return partials


def test_a_merge_that_fails_between_stages_names_itself() -> None:
    _, behind = build_runners(build_stages(partial(BadMerge()), "key"), SCHEMA)
    with pytest.raises(CombineFailed, match=r"Correct its merge\(\)") as caught:
        behind.combine(pa.table({"key": ["a"] * 3, "count": [1] * 3}))
    assert caught.value.method == "merge"


def test_rows_on_which_combine_fails_are_quarantined_by_the_partial_stage() -> None:
    class Picky(CountByKey):
        def combine(self, rows: pa.Table) -> pa.Table:
            if "bad" in rows["key"].to_pylist():
                raise ValueError("bad")
            return super().combine(rows)

    tester = new_tester(partial(Picky()), on_error="skip")
    assert Counter(row["key"] for row in tester.run([rows_of(["a", "bad", "b"])])) == {"a": 1, "b": 1}
    assert len(tester.quarantined) == 1


def test_rows_are_held_as_long_as_their_sender_noted_and_no_longer() -> None:
    """A replay in a later life does not hold what was emitted, nor emit what was held, whatever `every` is now."""
    [first, _] = build_runners(build_stages(partial(CountByKey(), "10 seconds"), "key"), SCHEMA)
    [later, _] = build_runners(build_stages(partial(CountByKey(), "1 batch"), "key"), SCHEMA)
    rows = pa.Table.from_pylist(rows_of(["a", "a"]), SCHEMA)
    state = later.new_state()
    held = later.step(state, [first.combine(rows)], Moment(UnitId(0, 0), 0, 0, 3_000))
    assert held.next is None
    assert later.lookup(state, "a").partials["count"].to_pylist() == [2]
    emitted = first.step(state, [later.combine(rows)], Moment(UnitId(0, 0), 1, 0, 4_000))
    assert emitted.next is not None
    assert emitted.next.to_pylist() == [{"key": "a", "count": 4}]
    assert not first.lookup(state, "a").partials.num_rows


def test_a_shorter_interval_holds_for_what_is_held_as_soon_as_there_are_rows_and_a_longer_one_after_its_end() -> None:
    tester_of = {
        every: build_runners(build_stages(partial(CountByKey(), every), "key"), SCHEMA)[0] for every in ("10 s", "60 s")
    }
    rows = pa.Table.from_pylist(rows_of(["a"]), SCHEMA)
    for first, then in (("60 s", "10 s"), ("10 s", "60 s")):
        state, runner = tester_of[first].new_state(), tester_of[then]
        runner.step(state, [tester_of[first].combine(rows)], Moment(UnitId(0, 0), 0, 0, 3_000))
        runner.step(state, [runner.combine(rows)], Moment(UnitId(0, 0), 1, 0, 4_000))
        assert runner.step(state, [], Moment(UnitId(0, 0), 2, 0, 9_999)).next is None
        emitted = runner.step(state, [], Moment(UnitId(0, 0), 3, 0, 10_000)).next
        assert emitted is not None
        assert emitted.to_pylist() == [{"key": "a", "count": 2}]


def test_rows_from_before_a_column_was_added_are_combined_with_nulls() -> None:
    class Sums(CountByKey):
        def combine(self, rows: pa.Table) -> pa.Table:
            return pa.table({"key": rows["key"], "count": rows["value"].fill_null(7)})

    [first, _] = build_runners(build_stages(partial(Sums()), "key"), SCHEMA)
    emitted = first.step(first.new_state(), [pa.table({"key": ["a"]})], Moment(UnitId(0, 0), 0, 0, 0)).next
    assert emitted is not None
    assert emitted.to_pylist() == [{"key": "a", "count": 7}]


def test_the_version_of_the_partials_is_that_of_the_operator() -> None:
    class Second(CountByKey):
        version = "2"

    assert [stage.operator.version for stage in partial(Second())] == ["2", "2"]


def test_held_partials_are_found_by_the_type_of_the_key_column() -> None:
    """Hashes of a number depend on its width, as in Spark."""
    schema = pa.schema([("key", pa.int32())])
    tester = OperatorTester(partial(CountByKey(), "1 hour"), key="key", schema=schema, tasks=6)
    tester.run([[{"key": 5}] * 3])
    assert (tester.state(5), tester.state(5, fresh=True)) == (0, 3)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (pa.string(), [("a", None), (None, "a")]),
        (pa.struct([("x", pa.string())]), [("a", None), ("a", {"x": None})]),
        (pa.float64(), [("a", 0.0), ("a", math.nan), ("a", None)]),
    ],
    ids=["nulls", "structs", "floats"],
)
def test_a_fresh_answer_has_no_rows_of_another_key_with_the_same_hash(
    kind: pa.DataType, keys: list[tuple[Any, Any]]
) -> None:
    schema = pa.schema([("key", pa.string()), ("other", kind)])
    rows = [{"key": key, "other": other} for key, other in keys for _ in range(len(str(other)))]
    tester = OperatorTester(partial(CountByKey(), "1 hour"), key=("key", "other"), schema=schema, tasks=6)
    for at in (0, 3_600_000):  # what the first batch brings is emitted, and what the second one brings is held
        tester.run([InputBatch(rows, at)])
    found = [(tester.state(key), tester.state(key, fresh=True)) for key in keys]
    assert found == [(len(str(other)), 2 * len(str(other))) for _, other in keys]


def test_upgraded_partials_keep_when_they_were_emitted_and_when_they_will_be() -> None:
    class Second(CountByKey):
        version = "2"

        def upgrade(self, _version: str, value: Any) -> Any:
            return value

    first, second = (
        build_runners(build_stages(partial(one(), "10 s"), "key"), SCHEMA)[0] for one in (CountByKey, Second)
    )
    state, rows = first.new_state(), pa.Table.from_pylist(rows_of(["a"]), SCHEMA)
    for batch, at in enumerate((0, 10_000)):
        first.step(state, [first.combine(rows)], Moment(UnitId(0, 0), batch, 0, at))
    state.value = second.operator.upgrade("1", state.value)
    held = second.lookup(state, "a")
    assert (held.flushed, held.partials["count"].to_pylist()) == (1, [1])
    assert second.step(state, [second.combine(rows)], Moment(UnitId(0, 0), 2, 0, 19_999)).next is None
    emitted = second.step(state, [second.combine(rows)], Moment(UnitId(0, 0), 3, 0, 20_000)).next
    assert emitted is not None
    assert emitted.to_pylist() == [{"key": "a", "count": 2}]


def test_a_question_does_not_change_the_state() -> None:
    class Listing(Operator):
        """A state that is neither by key nor columns."""

        def initial_state(self) -> list[Any]:
            return []

        def combine(self, rows: pa.Table) -> pa.Table:
            return rows

        def merge(self, partials: pa.Table) -> pa.Table:
            return partials

        def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
            state.value.extend(rows.to_pylist())

        def lookup(self, value: list[Any], key: tuple[Any, ...]) -> list[int]:
            return sorted(row["value"] for row in value if row["key"] == key[0])

    for operator in (Listing(), CountByKey(), Highest()):
        tester = new_tester(partial(operator, "1 hour"))
        tester.run([InputBatch(rows_of(["a", "b"]), 0), InputBatch(rows_of(["a", "a"]), 3_600_000)])
        before = tester.state("a")
        fresh = tester.state("a", fresh=True)
        assert fresh != before
        assert (tester.state("a"), tester.state("a", fresh=True)) == (before, fresh)
        assert tester.state("never", fresh=True) == tester.state("never")
