"""Aggregates per key, deduplication, the first rows of a key, and what is forgotten after some time."""

from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from elastic.errors import InvalidJob, InvalidSetting, UnknownColumn
from elastic.operators import (
    Aggregate,
    DropDuplicates,
    KeyedOperator,
    Operator,
    Stage,
    TopK,
    drop_duplicates_within_watermark,
    partial,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.aggregates import hyperloglog
from elastic.operators.columns.row_store import RowStore
from elastic.operators.kernels import vectorised
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Rekey, Scale
from tests.elastic.operators.event_streams import DELAY_MS, SCHEMA, TASKS, Row, Scenario, canonical, scenarios
from tests.elastic.operators.test_windows import FUNCTIONS, aggregate

ttls = st.sampled_from([None, 1, 2, 3])


def new_tester(operator: Operator) -> OperatorTester:
    stage = Stage(operator, grouping="table")
    return OperatorTester(stage, key="key", schema=SCHEMA, tasks=TASKS, watermark=("t", DELAY_MS))


def seconds(ttl: int | None) -> str | None:
    return None if ttl is None else f"{ttl} s"


@given(scenarios(), ttls)
@settings(deadline=None)
def test_aggregates_of_a_key_are_those_of_its_rows_so_far(scenario: Scenario, ttl: int | None) -> None:
    expected = []
    groups: dict[Any, list[Row]] = defaultdict(list)
    updated: dict[Any, int] = {}
    for batch, now, _ in scenario.clocked():
        for key in {row["key"] for row in batch}:
            if ttl is not None and updated.get(key, now) + ttl * 1_000 <= now:
                groups[key] = []
            updated[key] = now
            groups[key] += [row for row in batch if row["key"] == key]
            expected.append({"key": key, **aggregate(groups[key])})
    emitted = scenario.run(new_tester(Aggregate(ttl=seconds(ttl), **FUNCTIONS)))
    assert canonical(emitted) == canonical(expected)


@given(scenarios())
@settings(deadline=None)
def test_split_keys_have_the_same_aggregates(scenario: Scenario) -> None:
    scenario.faults = [[fault for fault in faults if not hasattr(fault, "tasks")] for faults in scenario.faults]
    pipeline = partial(Aggregate(**FUNCTIONS))
    tester = OperatorTester(pipeline, key="key", schema=SCHEMA, tasks=TASKS, nodes=3)
    last = {row["key"]: row for row in scenario.run(tester)}
    groups: dict[Any, list[Row]] = defaultdict(list)
    for batch in scenario.batches:
        for row in batch:
            groups[row["key"]].append(row)
    assert last == {key: {"key": key, **aggregate(rows)} for key, rows in groups.items()}


@pytest.mark.parametrize("distinct", [0, 1, 10, 300, 5_000, 200_000])
def test_an_approximate_count_is_within_four_standard_deviations(distinct: int) -> None:
    for rsd in (0.05, 0.01):
        bits = hyperloglog.bits_for(rsd)
        sketches = np.zeros((2, 1 << bits), np.uint8)
        values = pa.array(np.arange(distinct).repeat(2) * 7_919)
        hyperloglog.update(sketches, np.ones(len(values), np.int64), hyperloglog.encode(values, bits))
        nothing, estimate = hyperloglog.estimate(sketches)
        assert nothing == 0
        assert abs(estimate - distinct) <= 4 * rsd * distinct


def test_nan_is_greater_than_any_number_and_nulls_do_not_count() -> None:
    schema = pa.schema([("key", pa.string()), ("x", pa.float64())])
    tester = OperatorTester(Aggregate(least=F.min("x"), most=F.max("x"), n=F.count("x")), key="key", schema=schema)
    nan = float("nan")
    rows = [("a", nan), ("a", 1.0), ("b", nan), ("c", None), ("a", None)]
    emitted = tester.run([[dict(zip(("key", "x"), row, strict=True)) for row in rows]])
    found = {row["key"]: (str(row["least"]), str(row["most"]), row["n"]) for row in emitted}
    assert found == {"a": ("1.0", "nan", 2), "b": ("nan", "nan", 1), "c": ("None", "None", 0)}


def test_times_and_booleans_keep_their_type() -> None:
    table = pa.table(
        {
            "key": ["a", "a"],
            "at": pa.array([5, 3], pa.timestamp("ms", "UTC")),
            "day": pa.array([5, 3], pa.date32()),
            "ok": [True, False],
        }
    )
    functions = {f"{name}_{rule}": getattr(F, rule)(name) for name in ("at", "day", "ok") for rule in ("min", "max")}
    tester = OperatorTester(Aggregate(**functions), key="key", schema=table.schema)
    (emitted,) = tester.run([table])
    assert emitted["ok_min"] is False
    assert emitted["ok_max"] is True
    assert str(emitted["day_max"]) == "1970-01-06"
    assert emitted["at_min"] == table["at"][1].as_py()


@given(scenarios(), st.sampled_from([(), ("x",)]), ttls)
@settings(deadline=None)
def test_the_first_row_of_each_value_passes(scenario: Scenario, columns: tuple[str, ...], ttl: int | None) -> None:
    seen: dict[Any, int] = {}
    expected = []
    for batch, now, _ in scenario.clocked():
        in_batch: dict[Any, Row] = {}
        for row in batch:
            value = (row["key"], *(row[column] for column in columns))
            in_batch.setdefault(value, row)
        for value, row in in_batch.items():
            if value not in seen or (ttl is not None and seen[value] + ttl * 1_000 <= now):
                expected.append(row)
            seen[value] = now
    emitted = scenario.run(new_tester(DropDuplicates(*columns, ttl=seconds(ttl))))
    assert canonical(emitted) == canonical(expected)


@given(scenarios(), st.sampled_from([0, 15, 60]))
@settings(deadline=None)
def test_values_are_remembered_until_the_watermark_passes_them(scenario: Scenario, within: int) -> None:
    expires: dict[Any, int] = {}
    expected = []
    for batch, _, watermark in scenario.clocked():
        reached = -(10**9) if watermark is None else watermark
        for row in batch:
            if row["t"] is None or row["t"] <= reached:
                continue
            value = row["key"] if within else (row["key"], row["t"])
            if expires.get(value, -(10**9)) <= reached:
                expected.append(row)
                expires[value] = row["t"] + within
    operator = (
        drop_duplicates_within_watermark(time="t", within=f"{within} ms") if within else DropDuplicates("t", time="t")
    )
    assert canonical(scenario.run(new_tester(operator))) == canonical(expected)


@given(scenarios(), st.integers(1, 3), st.booleans(), ttls)
@settings(deadline=None)
def test_the_last_results_of_a_key_are_its_first_rows(
    scenario: Scenario, k: int, ascending: bool, ttl: int | None
) -> None:
    kept: dict[Any, list[Row]] = defaultdict(list)
    changed: dict[Any, int] = {}
    expected = []
    for batch, now, _ in scenario.clocked():
        for key in {row["key"] for row in batch}:
            if ttl is not None and changed.get(key, now) + ttl * 1_000 <= now:
                kept[key] = []
            new = [row for row in batch if row["key"] == key]
            sign = 1 if ascending else -1
            # Sorting is stable, so of rows with the same value the earlier one stays first.
            ranked = sorted([*kept[key], *new], key=lambda row: (row["x"] is None, sign * (row["x"] or 0)))[:k]
            if any(row is each for row in new for each in ranked):
                changed[key] = now
                kept[key] = ranked
                expected += [{**row, "rank": rank} for rank, row in enumerate(ranked, 1)]
    emitted = scenario.run(new_tester(TopK(k, by="x", ascending=ascending, ttl=seconds(ttl))))
    assert canonical(emitted) == canonical(expected)


@pytest.mark.parametrize(
    "operator",
    [
        Aggregate(ttl="5 s", n=F.count()),
        DropDuplicates("x", ttl="5 s"),
        DropDuplicates("t", time="t"),
        drop_duplicates_within_watermark(time="t", within="4 s"),
        TopK(2, by="x", ttl="5 s"),
    ],
    ids=["aggregate", "duplicates", "at a time", "within watermark", "top k"],
)
def test_what_has_expired_leaves_no_state(operator: Operator) -> None:
    tester = OperatorTester(operator, key="key", schema=SCHEMA, tasks=1, watermark=("t", 0))
    sizes = []
    for second in range(60):
        rows = [{"key": f"{second}-{n}", "t": second * 1_000 + n, "x": n} for n in range(30)]
        tester.run([rows])
        unit = tester._running.state(tester._running.routing.units(0)[0])
        sizes.append(unit.value.nbytes)
    assert max(sizes[30:]) <= max(sizes[:30]) * 1.2


class Total(KeyedOperator):
    """Adds up a column; what a key has is forgotten two seconds after its last update."""

    output_schema = "key string, total long"
    ttl = "2 s"

    def handle_key(self, key: Any, rows: Any, state: Any, context: Any) -> Any:
        known = [row["x"] for row in rows if row["x"] is not None]
        if known:
            state.update((state.get() or 0) + sum(known))
        if sum(known) == 3:
            state.clear()
        context.set_timer(context.timestamp_ms + 2_000, "processing", "a")
        yield {"key": key, "total": state.get()}

    def handle_expired(self, key: Any, _timer: Any, state: Any, _context: Any) -> Any:
        yield {"key": key, "total": -1 if state.exists() else None}


@given(scenarios())
@settings(deadline=None)
def test_the_state_of_a_key_lives_for_some_time_after_its_last_update(scenario: Scenario) -> None:
    values: dict[Any, tuple[int, int]] = {}
    timers: dict[Any, int] = {}
    expected = []
    end: Any = [([], 10_000_000, None)]
    for batch, now, _ in [*scenario.clocked(), *end]:
        values = {key: (value, at) for key, (value, at) in values.items() if at + 2_000 > now}
        for key in {row["key"] for row in batch}:
            known = [row["x"] for row in batch if row["key"] == key and row["x"] is not None]
            if known:
                values[key] = (values.get(key, (0, 0))[0] + sum(known), now)
            if sum(known) == 3:
                values.pop(key, None)
            timers[key] = now + 2_000
            expected.append({"key": key, "total": values.get(key, (None, 0))[0]})
        for key in [key for key, at in timers.items() if at <= now]:
            del timers[key]
            expected.append({"key": key, "total": -1 if key in values else None})
    assert canonical(scenario.run(new_tester(Total()))) == canonical(expected)


def test_an_expired_key_takes_no_memory() -> None:
    tester = new_tester(Total())
    tester.run([[{"key": "a", "t": 0, "x": 1}], Rekey({"a": 3}), Crash("node-1"), Crash("node-2"), Scale(3)])
    assert tester.state("a") == 1
    tester.run([InputBatch([], timestamp_ms=2_000)])
    assert tester.state("a") is None
    assert all(len(state.timers) == 0 for states in tester._running._states.values() for state in states.values())


def test_the_names_of_the_engines_timers_are_refused() -> None:
    class Bad(KeyedOperator):
        def handle_key(self, _key: Any, _rows: Any, _state: Any, context: Any) -> Any:
            context.set_timer(1, name="elastic.ttl")

    with pytest.raises(Exception, match="Rename 'elastic"):
        new_tester(Bad()).run([[{"key": "a", "t": 0, "x": 1}]])


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=30), max_size=6), st.data())
@settings(deadline=None)
def test_a_row_store_finds_the_live_rows_of_an_owner(batches: list[list[tuple[int, int]]], data: Any) -> None:
    store = RowStore(pa.schema([("n", pa.int64())]))
    rows: list[tuple[int, int, int]] = []
    for batch in batches:
        first = len(rows)
        rows += [(owner, time, first + place) for place, (owner, time) in enumerate(batch)]
        table = pa.table({"n": pa.array(range(first, len(rows)), pa.int64())})
        owners, times = (np.array([each[place] for each in batch], np.int64) for place in (0, 1))
        store.append(table, owners, times, times)
    until = data.draw(st.integers(-1, 20))
    store.remove(store.expired(until))
    live = [row for row in rows if row[1] > until]
    assert len(store) == len(live)
    if data.draw(st.booleans()):
        store.compact()
    probes = np.arange(6)
    lows, highs = np.full(6, data.draw(st.integers(0, 20))), np.full(6, data.draw(st.integers(0, 20)))
    found_probes, found = store.match(probes, lows, highs)
    taken = store.take(found)["n"].to_pylist()
    expected = [
        (owner, n)
        for probe in range(6)
        for owner, time, n in reversed(live)
        if owner == probe and lows[0] <= time <= highs[0]
    ]
    assert list(zip(found_probes.tolist(), taken, strict=True)) == expected
    assert store.next_expiry() == min((time for _, time, _ in live), default=None)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=40), st.integers(0, 40))
@settings(deadline=None)
def test_both_implementations_of_chains_agree(rows: list[tuple[int, int]], begin: int) -> None:
    compiled = pytest.importorskip("elastic.operators.kernels.compiled")
    owners, times = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    begin = min(begin, len(rows))
    results = []
    for kernels in (vectorised, compiled):
        heads, following = np.full(6, -1, np.int64), np.full(len(rows), -1, np.int64)
        kernels.link_rows(owners[:begin], 0, heads, following)
        kernels.link_rows(owners, begin, heads, following)
        for room in (1_000, 3):
            probes, found = np.zeros(room, np.int64), np.zeros(room, np.int64)
            bounds = [np.full(6, bound, np.int64) for bound in (2, 7)]
            for array in bounds:
                array.setflags(write=False)
            asked = np.arange(6)
            asked.setflags(write=False)
            count = kernels.match_rows(asked, *bounds, begin, heads, following, times, probes, found)
            results.append((count, probes[:count].tolist(), found[:count].tolist()))
        results.append((heads.tolist(), following.tolist(), []))
    assert results[:3] == results[3:]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: DropDuplicates(time="t"), InvalidJob),
        (lambda: DropDuplicates("t", time="t", ttl="1 s"), InvalidJob),
        (lambda: DropDuplicates("nowhere"), UnknownColumn),
        (lambda: DropDuplicates(ttl="soon"), InvalidSetting),
        (lambda: drop_duplicates_within_watermark(time="t", within="0 s"), InvalidSetting),
        (lambda: TopK(0, by="x"), InvalidSetting),
        (lambda: TopK(1, by="nowhere"), UnknownColumn),
        (lambda: TopK(1, by="x", rank="x"), InvalidJob),
        (lambda: Aggregate(n="count"), InvalidJob),  # type: ignore[arg-type]
        (lambda: Aggregate(key=F.count()), InvalidJob),
        (lambda: Aggregate(n=F.mean("key")), InvalidJob),
        (lambda: Aggregate(n=F.approx_count_distinct("x", rsd=2)), InvalidJob),
        (lambda: partial(Aggregate(ttl="1 s", n=F.count())), InvalidJob),
    ],
)
def test_what_cannot_work_is_refused_before_it_starts(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        new_tester(make()).run([])
