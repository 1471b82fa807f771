"""Joins give what a batch join of all rows that are not late gives, whatever fails."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from elastic.errors import ElasticError, InvalidJob, InvalidOutput, InvalidSetting, OperatorFailed, UnknownColumn
from elastic.operators import Aggregate, Enrich, IntervalJoin, Operator, Side, Stage, WindowJoin, window
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Rekey, Scale
from tests.elastic.operators.event_streams import DELAY_MS, TASKS, Row, Scenario, canonical, keys, scenarios

SCHEMA = pa.schema([("key", pa.string()), ("input", pa.string()), ("t", pa.int64()), ("n", pa.int64())])
LEFT = Side("ads", time="t", columns={"shown": "t", "ad": "n"})
RIGHT = Side("clicks", time="t", columns={"clicked": "t", "click": "n"})

joined_rows = st.builds(
    lambda key, name, t, n: {"key": key, "input": name, "t": t, "n": n},
    keys,
    st.sampled_from(["ads", "clicks"]),
    st.one_of(st.integers(-30, 70), st.integers(0, 20), st.none()),
    st.integers(0, 99),
)
joined = scenarios(st.lists(st.lists(joined_rows, max_size=8), min_size=1, max_size=7))
hows = st.sampled_from(["inner", "left", "right", "full"])


def new_tester(operator: Operator, **options: Any) -> OperatorTester:
    stage = Stage(operator, grouping="table")
    return OperatorTester(stage, key="key", schema=SCHEMA, tasks=TASKS, watermark=("t", DELAY_MS), **options)


def batch_join(left: list[Row], right: list[Row], matches: Any, how: str) -> list[Row]:
    """Join two lists of rows with the columns of the results, with nested loops."""
    pairs = [(a, b) for a in left for b in right if a["key"] is not None and a["key"] == b["key"] and matches(a, b)]
    results = [{**a, **b} for a, b in pairs]
    if how in ("left", "full"):
        results += [{**a, "clicked": None, "click": None} for a in left if all(a is not each for each, _ in pairs)]
    if how in ("right", "full"):
        results += [{**b, "shown": None, "ad": None} for b in right if all(b is not each for _, each in pairs)]
    return results


def by_name(rows: list[Row]) -> list[str]:
    return canonical([dict(sorted(row.items())) for row in rows])


def is_dearer(pairs: pa.Table) -> pa.ChunkedArray:
    """Return which clicks have a number above that of their ad, as a condition of a join."""
    return pc.greater(pairs["click"], pairs["ad"])


conditions = st.sampled_from([None, is_dearer])


@given(
    joined,
    st.sampled_from([(0, 10), (-15, 15), (-20, -5), (5, 30), (0, 0)]),
    hows,
    st.sampled_from([0, 25]),
    conditions,
)
@settings(deadline=None)
def test_an_interval_join_has_the_rows_of_a_batch_join(
    scenario: Scenario, bounds: tuple[int, int], how: Any, lateness: int, where: Any
) -> None:
    lower, upper = bounds
    sides: tuple[list[Row], list[Row]] = ([], [])
    for batch, _, watermark in scenario.clocked():
        for row in batch:
            if row["t"] is not None and (watermark is None or row["t"] + lateness > watermark):
                is_left = row["input"] == "ads"
                named = {"shown": row["t"], "ad": row["n"]} if is_left else {"clicked": row["t"], "click": row["n"]}
                sides[0 if is_left else 1].append({"key": row["key"], **named})
    join = IntervalJoin(
        LEFT, RIGHT, lower=f"{lower} ms", upper=f"{upper} ms", how=how, where=where, lateness=f"{lateness} ms"
    )
    expected = batch_join(
        *sides,
        lambda a, b: a["shown"] + lower <= b["clicked"] <= a["shown"] + upper and (not where or b["click"] > a["ad"]),
        how,
    )
    assert by_name(scenario.run(new_tester(join))) == by_name(expected)


@given(joined, st.sampled_from([(40, 40), (30, 10), (50, 20)]), hows, st.sampled_from([0, 25]), conditions)
@settings(deadline=None)
def test_a_window_join_has_the_rows_of_a_batch_join(
    scenario: Scenario, shape: tuple[int, int], how: Any, lateness: int, where: Any
) -> None:
    size, slide = shape
    sides: tuple[list[Row], list[Row]] = ([], [])
    for batch, _, watermark in scenario.clocked():
        for row in batch:
            for begin in [] if row["t"] is None else range(row["t"] - size + 1, row["t"] + 1):
                if begin % slide or (watermark is not None and begin + size + lateness <= watermark):
                    continue
                is_left = row["input"] == "ads"
                named = {"shown": row["t"], "ad": row["n"]} if is_left else {"clicked": row["t"], "click": row["n"]}
                of_window = {"start": begin, "end": begin + size}
                sides[0 if is_left else 1].append({"key": row["key"], "window": of_window, **named})
    shape_ = window(f"{size} ms", f"{slide} ms")
    join = WindowJoin(LEFT, RIGHT, shape_, how=how, where=where, lateness=f"{lateness} ms")
    expected = batch_join(*sides, lambda a, b: a["window"] == b["window"] and (not where or b["click"] > a["ad"]), how)
    assert by_name(scenario.run(new_tester(join))) == by_name(expected)


@given(joined, st.sampled_from(["inner", "left"]), st.sampled_from([None, 2]))
@settings(deadline=None)
def test_a_stream_row_gets_the_newest_table_row_of_its_key(scenario: Scenario, how: Any, ttl: int | None) -> None:
    table: dict[Any, tuple[int, int]] = {}
    expected = []
    for batch, now, _ in scenario.clocked():
        table.update({row["key"]: (row["n"], now) for row in batch if row["input"] == "clicks"})
        for row in batch:
            if row["input"] == "ads":
                value, updated = table.get(row["key"], (None, 0))
                known = value is not None and (ttl is None or now < updated + ttl * 1_000)
                if known or how == "left":
                    expected.append({"key": row["key"], "ad": row["n"], "click": value if known else None})
    join = Enrich(
        Side("ads", columns={"ad": "n"}),
        table=Side("clicks", columns={"click": "n"}),
        how=how,
        ttl=None if ttl is None else f"{ttl} s",
    )
    assert by_name(scenario.run(new_tester(join))) == by_name(expected)


def ad(t: int, n: int = 0, key: str = "a") -> Row:
    return {"key": key, "input": "ads", "t": t, "n": n}


def click(t: int, n: int = 0, key: str = "a") -> Row:
    return {"key": key, "input": "clicks", "t": t, "n": n}


@pytest.mark.parametrize("kind", ["interval", "window"])
def test_a_join_whose_inputs_run_at_a_ratio_of_twelve_to_one_loses_nothing(kind: str) -> None:
    """One input is twelve batches ahead of the other; the watermark is that of the input behind."""
    ads = [[ad(12 * 10 * batch + 10 * number, number) for number in range(12)] for batch in range(12)]
    clicks = [[click(10 * batch + number, batch) for number in range(3)] for batch in range(144)]
    items: list[Any] = []
    for batch in range(144):
        # Ads come twelve batches' worth at a time; the watermark follows the slower input.
        items += [InputBatch([*(ads[batch] if batch < 12 else []), *clicks[batch]], next_watermark_ms=10 * batch + 2)]
        items += [Scale(2 + batch % 3)] if batch % 20 == 7 else []
        items += [Crash("node-1")] if batch % 31 == 5 else []
    items += [InputBatch([], next_watermark_ms=10**6)]
    operator = (
        IntervalJoin(LEFT, RIGHT, upper="9 ms", how="full")
        if kind == "interval"
        else WindowJoin(LEFT, RIGHT, window("10 ms"), how="full")
    )
    emitted = new_tester(operator, snapshot_every=7).run(items)
    assert len(emitted) == 3 * 144
    assert all(row["shown"] is not None and row["clicked"] is not None for row in emitted)


@pytest.mark.parametrize(
    "operator",
    [
        IntervalJoin(LEFT, RIGHT, lower="-20 ms", upper="20 ms", how="full"),
        WindowJoin(LEFT, RIGHT, window("40 ms", "20 ms"), how="inner"),
        Enrich(Side("ads", columns=["n"]), table=Side("clicks", columns={"click": "n"}), ttl="5 s"),
    ],
    ids=["interval", "window", "enrich"],
)
def test_rows_that_can_match_no_more_leave_no_state(operator: Operator) -> None:
    tester = OperatorTester(operator, key="key", schema=SCHEMA, tasks=1, watermark=("t", 0))
    sizes = []
    for second in range(60):
        rows = [make(second * 50 + n, n, f"{second}-{n}") for n in range(30) for make in (ad, click)]
        tester.run([rows])
        unit = tester._running.state(tester._running.routing.units(0)[0])
        sizes.append(unit.value.nbytes)
    assert max(sizes[30:]) <= max(sizes[:30]) * 1.2


def test_waiting_rows_and_tables_can_be_queried() -> None:
    tester = new_tester(IntervalJoin(LEFT, RIGHT, upper="10 ms"))
    tester.run([[ad(1, 7), click(3, 8), ad(1, 9, "b")]])
    nothing = {"shown": None, "ad": None, "clicked": None, "click": None}
    assert tester.state("a") == [{**nothing, "shown": 1, "ad": 7}, {**nothing, "clicked": 3, "click": 8}]
    assert tester.state("c") == []
    enrich = new_tester(Enrich(Side("ads"), table=Side("clicks", columns=["n"])))
    assert enrich.run([[ad(1, 7), click(3, 8), click(3, 9)], [ad(2)]]) == [{"key": "a", "n": 9}] * 2
    assert enrich.state("a") == {"n": 9}
    assert enrich.state("b") is None


def test_several_matches_are_in_order_of_the_row_that_arrives_and_then_the_newest_first() -> None:
    tester = new_tester(IntervalJoin(LEFT, RIGHT, upper="10 ms"))
    rows = tester.run([[ad(1, 1), ad(2, 2), ad(3, 3)], [click(5, 5), click(4, 4)]])
    assert [(row["click"], row["ad"]) for row in rows] == [(5, 3), (5, 2), (5, 1), (4, 3), (4, 2), (4, 1)]
    assert all(before is not after for before, after in pairwise(rows))


def test_keys_that_move_take_waiting_rows_and_their_expiry_with_them() -> None:
    tester = new_tester(IntervalJoin(LEFT, RIGHT, upper="10 ms", how="left"))
    tester.run([[ad(100, 1), ad(101, 2, "b")], Rekey({"a": 3, "b": 4}), Crash("node-1"), Crash("node-2")])
    rows = tester.run([[click(105, 3)], InputBatch([], next_watermark_ms=200)])
    assert [(row["ad"], row["click"]) for row in rows] == [(1, 3), (2, None)]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: IntervalJoin(LEFT, RIGHT, upper="1 s", how="outer"), InvalidSetting),  # type: ignore[arg-type]
        (lambda: IntervalJoin(LEFT, RIGHT, lower="2 s", upper="1 s"), InvalidJob),
        (lambda: IntervalJoin(LEFT, RIGHT, upper="1 s", where="ad < click"), InvalidSetting),  # type: ignore[arg-type]
        (lambda: IntervalJoin(LEFT, Side("clicks"), upper="1 s"), InvalidJob),
        (lambda: IntervalJoin(LEFT, LEFT, upper="1 s"), InvalidJob),
        (lambda: IntervalJoin(LEFT, Side("clicks", time="t", columns={"ad": "n"}), upper="1 s"), InvalidJob),
        (lambda: IntervalJoin(LEFT, RIGHT, upper="1 s", tag="source"), UnknownColumn),
        (lambda: IntervalJoin(LEFT, RIGHT, upper="1 s", tag="n"), InvalidJob),
        (lambda: IntervalJoin(LEFT, Side("clicks", time="t", columns=["page"]), upper="1 s"), UnknownColumn),
        (lambda: IntervalJoin(LEFT, Side("clicks", time="at"), upper="1 s"), UnknownColumn),
        (lambda: WindowJoin(LEFT, Side("clicks", time="t", columns={"window": "n"}), window("1 s")), InvalidJob),
        (lambda: Enrich(LEFT, table=RIGHT, how="full"), InvalidSetting),  # type: ignore[arg-type]
        (lambda: Enrich(LEFT, table=RIGHT, ttl="0 s"), InvalidSetting),
    ],
)
def test_what_cannot_be_joined_is_refused_before_it_starts(make: Any, error: type[ElasticError]) -> None:
    with pytest.raises(error):
        new_tester(make()).run([])


@given(joined, st.sampled_from([10, 40]))
@settings(deadline=None)
def test_windows_over_the_pairs_of_a_join_are_those_of_a_batch_computation(scenario: Scenario, size: int) -> None:
    """Rows of the second stage are in windows by the time of the ad, so these wait for the clicks on it."""
    scenario.faults = [[fault for fault in faults if not hasattr(fault, "tasks")] for faults in scenario.faults]
    ads, clicks = [], []
    for batch, _, watermark in scenario.clocked():
        in_time = [row for row in batch if row["t"] is not None and (watermark is None or row["t"] > watermark)]
        ads += [row for row in in_time if row["input"] == "ads"]
        clicks += [row for row in in_time if row["input"] == "clicks"]
    groups: dict[Any, list[int]] = defaultdict(list)
    for a in ads:
        for b in clicks:
            if a["key"] is not None and a["key"] == b["key"] and a["t"] <= b["t"] <= a["t"] + 15:
                groups[a["key"], a["t"] // size * size].append(b["n"])
    tester = OperatorTester(
        [
            Stage(IntervalJoin(LEFT, RIGHT, upper="15 ms"), name="pairs"),
            Stage(
                Aggregate(clicks=F.count(), most=F.max("click")).over(
                    window(f"{size} ms"), time="shown", lateness="15 ms"
                ),
                name="windows",
            ),
        ],
        key="key",
        schema=SCHEMA,
        tasks=TASKS,
        watermark=("t", DELAY_MS),
    )
    emitted = scenario.run(tester) + tester.run([InputBatch([], timestamp_ms=10**8, next_watermark_ms=10**8)])
    found = [(row["key"], row["window"]["start"], row["clicks"], row["most"]) for row in emitted]
    assert sorted(found) == sorted((*group, len(numbers), max(numbers)) for group, numbers in groups.items())


@pytest.mark.parametrize("answer", [None, [True], [1, 1], ["a", "b"]])
def test_a_condition_that_does_not_answer_for_every_pair_fails(answer: Any) -> None:
    join = IntervalJoin(LEFT, RIGHT, upper="10 ms", where=lambda _: answer)
    with pytest.raises(InvalidOutput, match="not a boolean for each"):
        new_tester(join).run([[ad(1), ad(2), click(3)]])


def test_null_is_no_match() -> None:
    join = IntervalJoin(
        LEFT, RIGHT, upper="10 ms", how="full", where=lambda pairs: pc.greater(pairs["click"], pairs["ad"])
    )
    tester = new_tester(join)
    assert tester.run([[ad(1, 1), {**click(3), "n": None}]]) == []
    assert len(tester.run([InputBatch([], next_watermark_ms=100)])) == 2


def test_a_row_of_an_unknown_input_fails() -> None:
    with pytest.raises(OperatorFailed, match="input 'bids'"):
        new_tester(IntervalJoin(LEFT, RIGHT, upper="1 s")).run([[{**ad(1), "input": "bids"}]])


def test_nulls_match_nothing_not_even_nulls() -> None:
    tester = new_tester(IntervalJoin(LEFT, RIGHT, lower="-9 ms", upper="9 ms", how="full"))
    rows = tester.run([[ad(1, 1), {**ad(2, 2), "key": None}], [{**click(2, 3), "key": None}]])
    assert rows == []
    rows = tester.run([InputBatch([], next_watermark_ms=100)])
    assert sorted((row["ad"] or 0, row["click"] or 0) for row in rows) == [(0, 3), (1, 0), (2, 0)]
    assert new_tester(IntervalJoin(LEFT, RIGHT, upper="9 ms")).run([[{**ad(2), "key": None}]]) == []


@pytest.mark.parametrize(("watermark", "left", "right"), [(97, [], []), (98, [], [5]), (109, [], []), (110, [4], [])])
def test_a_row_waits_until_no_row_of_the_other_input_can_match(
    watermark: int, left: list[int], right: list[int]
) -> None:
    """An ad at 100 waits for clicks until 110, a click at 100 for ads until 98."""
    tester = new_tester(IntervalJoin(LEFT, RIGHT, lower="2 ms", upper="10 ms", how="full"))
    tester.run([[ad(100, 4), click(100, 5)], InputBatch([], next_watermark_ms=watermark - 1)])
    rows = tester.run([InputBatch([], next_watermark_ms=watermark)])
    assert [row["ad"] for row in rows if row["ad"]] == left
    assert [row["click"] for row in rows if row["click"]] == right
