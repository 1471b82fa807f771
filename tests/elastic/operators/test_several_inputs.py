"""Jobs with several inputs and graphs of stages give what a batch computation gives, at any rates, whatever fails."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from elastic.errors import InvalidJob, InvalidOutput
from elastic.operators import (
    Aggregate,
    Context,
    IntervalJoin,
    Operator,
    Side,
    Stage,
    State,
    ToNext,
    ToSink,
    WindowJoin,
    stateless,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.graph import Input
from elastic.operators.testing import Crash, InputBatch, OperatorTester, Scale
from tests.elastic.operators.event_streams import CrashOne

END_MS = 10**6
ADS, CLICKS = "id long, shown long, ad long", "ad_id long, clicked long, click long"
Row = dict[str, Any]


def inputs(delays: Sequence[int] = (0, 0), idle_after: str | None = None) -> list[Input]:
    return [
        Input(name="ads", schema=ADS, event_time="shown", watermark_delay=f"{delays[0]} ms", idle_after=idle_after),
        Input(name="clicks", schema=CLICKS, event_time="clicked", watermark_delay=f"{delays[1]} ms", key="ad_id"),
    ]


AD, CLICK = Side("ads", time="shown", columns=["shown", "ad"]), Side("clicks", time="clicked", columns=["click"])


@st.composite
def streams(draw: st.DrawFn, names: tuple[str, str, str]) -> tuple[list[list[Row]], int]:
    """Return the batches of an input at its own rate, and by how much a row is behind an earlier one at most."""
    key, time, number = names
    step, disorder = draw(st.integers(0, 12)), draw(st.integers(0, 30))
    batches, now, count = [], draw(st.integers(0, 300)), 0
    for size in draw(st.lists(st.integers(0, 6), min_size=1, max_size=6)):
        batch = []
        for _ in range(size):
            now, count = now + step, count + 1
            batch.append({key: draw(st.integers(0, 2)), time: now - draw(st.integers(0, disorder)), number: count})
        batches.append(batch)
    return batches, disorder + 1


faults = st.lists(st.one_of(st.builds(Scale, st.integers(1, 4)), st.builds(CrashOne, st.integers(0, 3))), max_size=6)


def play(tester: OperatorTester, scenario: Sequence[Any]) -> list[Row]:
    """Run a scenario in which nodes crash, whatever their names."""
    emitted = []
    for item in scenario:
        nodes = tester.assignment.nodes if isinstance(item, CrashOne) else ()
        emitted += tester.run([Crash(nodes[item.number % len(nodes)]) if nodes else item])
    return emitted


def interleave(given_batches: dict[str, list[list[Row]]], between: Sequence[Any]) -> list[Any]:
    """Return a scenario in which each batch has the next one of every input, with faults between."""
    scenario: list[Any] = []
    for number in range(max(map(len, given_batches.values()))):
        scenario.append({name: each[number] for name, each in given_batches.items() if number < len(each)})
        if number < len(between):
            scenario.append(between[number])
    return [*scenario, InputBatch({}, next_watermark_ms=END_MS)]


@given(
    streams(("id", "shown", "ad")), streams(("ad_id", "clicked", "click")), st.sampled_from(["inner", "full"]), faults
)
@settings(deadline=None, max_examples=60)
def test_a_join_of_two_inputs_at_any_rates_is_a_batch_join(
    left: tuple[list[list[Row]], int], right: tuple[list[list[Row]], int], how: Any, between: list[Any]
) -> None:
    join = Stage(IntervalJoin(AD, CLICK, lower="-5 ms", upper="40 ms", how=how), key="id", grouping="table")
    tester = OperatorTester(join, inputs=inputs((left[1], right[1])), tasks=5)
    emitted = play(tester, interleave({"ads": left[0], "clicks": right[0]}, between))
    ads = [row for batch in left[0] for row in batch]
    clicks = [row for batch in right[0] for row in batch]
    pairs = [(a, c) for a in ads for c in clicks if a["id"] == c["ad_id"] and -5 <= c["clicked"] - a["shown"] <= 40]
    expected = Counter((a["ad"], c["click"]) for a, c in pairs)
    if how == "full":
        expected.update((a["ad"], None) for a in ads if all(a is not one for one, _ in pairs))
        expected.update((None, c["click"]) for c in clicks if all(c is not one for _, one in pairs))
    assert Counter((row["ad"], row["click"]) for row in emitted) == expected


@given(
    streams(("id", "shown", "ad")),
    streams(("ad_id", "clicked", "click")),
    st.sampled_from(["shown", "clicked"]),
    faults,
)
@settings(deadline=None, max_examples=60)
def test_windows_behind_a_join_wait_for_results_that_lie_behind_its_watermark(
    left: tuple[list[list[Row]], int], right: tuple[list[list[Row]], int], time: str, between: list[Any]
) -> None:
    sides = (AD, Side("clicks", time="clicked", columns=["clicked", "click"]))
    join = Stage(IntervalJoin(*sides, lower="-5 ms", upper="40 ms", how="left"), key="id", name="join")
    counts = Stage(Aggregate(n=F.count()).over(window("20 ms"), time=time), key="id")
    tester = OperatorTester([join, counts], inputs=inputs((left[1], right[1])), tasks=5)
    end = [InputBatch({}, next_watermark_ms=END_MS), {}]
    emitted = play(tester, [*interleave({"ads": left[0], "clicks": right[0]}, between), *end])
    ads = [row for batch in left[0] for row in batch]
    clicks = [row for batch in right[0] for row in batch]
    expected: Counter[Any] = Counter()
    for ad in ads:
        matches = [c for c in clicks if c["ad_id"] == ad["id"] and -5 <= c["clicked"] - ad["shown"] <= 40]
        times = [ad["shown"] if time == "shown" else c["clicked"] for c in matches]
        times += [ad["shown"]] if not matches and time == "shown" else []  # without a click there is no time of one
        expected.update((ad["id"], at // 20 * 20) for at in times)
    assert {(row["id"], row["window"]["start"]): row["n"] for row in emitted} == expected
    assert len(emitted) == len(expected)


def twelve_to_one() -> list[dict[str, list[Row]]]:
    """Twelve batches in which the clicks are done with all of time in the first, and the ads take them all."""
    clicks = [{"ad_id": n % 120, "clicked": 10 * (n % 120) + 5, "click": n} for n in range(1_200)]
    ads = [{"id": n, "shown": 10 * n, "ad": n} for n in range(120)]
    return [
        {"clicks": clicks if not number else [], "ads": ads[10 * number : 10 * number + 10]} for number in range(12)
    ]


def test_a_join_whose_inputs_run_at_twelve_to_one_loses_nothing() -> None:
    join = Stage(WindowJoin(AD, CLICK, window("100 ms")), key="id")
    assert len(OperatorTester(join, inputs=inputs()).run(twelve_to_one())) == 1_200


def test_the_watermark_of_one_input_alone_would_lose_most_of_it() -> None:
    rows = [
        [
            *({"id": row["id"], "input": "ads", "t": row["shown"], "n": row["ad"]} for row in batch["ads"]),
            *({"id": row["ad_id"], "input": "clicks", "t": row["clicked"], "n": 0} for row in batch["clicks"]),
        ]
        for batch in twelve_to_one()
    ]
    sides = (Side("ads", time="t", columns={"a": "n"}), Side("clicks", time="t", columns={"c": "n"}))
    schema = "id long, input string, t long, n long"
    tester = OperatorTester(WindowJoin(*sides, window("100 ms")), key="id", schema=schema, watermark=("t", 0))
    assert len(tester.run(rows)) == 200


def test_an_idle_input_holds_nothing_back() -> None:
    counts = Stage(Aggregate(n=F.count()).over(window("10 ms"), time="clicked"), key="ad_id", inputs=["both"])
    both = Stage(stateless(lambda rows: rows.select(["ad_id", "clicked"]), "ad_id long, clicked long"), "k", "both")
    both = Stage(both.operator, key="ad_id", name="both", inputs={"ads": "id", "clicks": "ad_id"})
    tester = OperatorTester([both, counts], inputs=inputs(idle_after="3 seconds"))
    click = [{"ad_id": 1, "clicked": 100, "click": 0}]
    later = [{"ad_id": 1, "clicked": 200, "click": 0}]
    ad = [{"id": 1, "shown": 5, "ad": 0}]
    assert tester.run([{"clicks": click, "ads": ad}, {"clicks": later}, {}]) == []  # the ads are at 5
    emitted = tester.run([{}, {}])  # three seconds after their last row they are idle
    assert [row["n"] for row in emitted] == [1]


# Three stages of windows, one behind the other.


def at_end(rows: pa.Table) -> pa.Table:
    """Return results of windows with a time of their own: the last one of their window."""
    ends = pc.subtract(pc.struct_field(rows["window"].combine_chunks(), "end"), 1)
    return pa.table({"key": rows["key"], "at": ends, "n": rows["n"]})


def at_start(rows: pa.Table) -> pa.Table:
    starts = pc.struct_field(rows["window"].combine_chunks(), "start")
    return pa.table({"key": rows["key"], "at": starts, "n": rows["n"]})


def three_windows(to_time: Any, lateness: int = 0) -> list[Any]:
    between = "key long, at long, n long"
    return [
        Aggregate(n=F.count()).over(window("10 ms"), time="t", lateness=f"{lateness} ms"),
        stateless(to_time, between),
        Aggregate(n=F.max("n")).over(window("40 ms"), time="at"),
        stateless(to_time, between),
        Aggregate(n=F.sum("n"), windows=F.count()).over(window("120 ms"), time="at"),
    ]


def windows_of(rows: list[Row], sizes: tuple[int, int, int] = (10, 40, 120)) -> dict[Any, tuple[int, int]]:
    """Return the sum of the maxima of the counts, as a batch computation has it."""
    first, second, third = sizes
    counts = Counter((row["key"], row["t"] // first * first) for row in rows)
    maxima: dict[Any, int] = defaultdict(int)
    for (key, start), count in counts.items():
        maxima[key, start // second * second] = max(maxima[key, start // second * second], count)
    totals: dict[Any, tuple[int, int]] = {}
    for (key, start), greatest in maxima.items():
        total, number = totals.get((key, start // third * third), (0, 0))
        totals[key, start // third * third] = (total + greatest, number + 1)
    return totals


@given(
    streams(("key", "t", "n")), st.sampled_from([at_end, at_start]), st.sampled_from([0, 25]), st.integers(1, 3), faults
)
@settings(deadline=None, max_examples=60)
def test_three_stages_of_windows_are_those_of_a_batch_computation(
    stream: tuple[list[list[Row]], int], to_time: Any, lateness: int, empty: int, between: list[Any]
) -> None:
    batches, disorder = stream
    # What is behind by less than the lateness is not late: with it the delay may be that much shorter.
    watermark = ("t", max(0, disorder - lateness))
    stages = three_windows(to_time, lateness)
    tester = OperatorTester(stages, key="key", schema="key long, t long, n long", tasks=5, watermark=watermark)
    scenario = [item for batch, *fault in _zip(batches, between) for item in (batch, *fault, *([[]] * (empty - 1)))]
    end = [InputBatch([], next_watermark_ms=END_MS), [], [], []]  # each stage of windows needs a batch more
    emitted = play(tester, [*scenario, *end])
    found = {(row["key"], row["window"]["start"]): (row["n"], row["windows"]) for row in emitted}
    assert len(found) == len(emitted)
    assert found == windows_of([row for batch in batches for row in batch])


def _zip(batches: list[Any], between: list[Any]) -> list[tuple[Any, ...]]:
    return [(batch, *between[number : number + 1]) for number, batch in enumerate(batches)]


# Stages with several followers.

SCHEMA = "key long, t long, n long"


def diamond() -> list[Stage]:
    """Sums and counts of the same windows, by two ways, joined again."""
    sums = Aggregate(n=F.sum("n")).over(window("10 ms"), time="t")
    counts = Aggregate(n=F.count()).over(window("10 ms"), time="t")
    join = IntervalJoin(
        Side("sum-times", time="at", columns={"sum": "n", "at": "at"}),
        Side("count-times", time="at", columns={"count": "n"}),
        upper="0 ms",
    )
    times = "key long, at long, n long"
    return [
        Stage(stateless(lambda rows: rows, SCHEMA), name="all"),
        Stage(sums, name="sums", inputs=["all"]),
        Stage(counts, name="counts", inputs="all"),
        Stage(stateless(at_end, times), name="sum-times", inputs=["sums"]),
        Stage(stateless(at_end, times), name="count-times", inputs=["counts"]),
        Stage(join, name="both", inputs=["sum-times", "count-times"]),
    ]


@given(streams(("key", "t", "n")), faults)
@settings(deadline=None, max_examples=40)
def test_two_ways_that_meet_again_lose_nothing(stream: tuple[list[list[Row]], int], between: list[Any]) -> None:
    batches, disorder = stream
    tester = OperatorTester(diamond(), key="key", schema=SCHEMA, tasks=5, watermark=("t", disorder))
    scenario = [item for pair in _zip(batches, between) for item in pair]
    emitted = play(tester, [*scenario, InputBatch([], next_watermark_ms=END_MS), [], []])
    expected: dict[Any, tuple[int, int]] = {}
    for row in (row for batch in batches for row in batch):
        total, count = expected.get((row["key"], row["t"] // 10), (0, 0))
        expected[row["key"], row["t"] // 10] = (total + row["n"], count + 1)
    assert {(row["key"], row["at"] // 10): (row["sum"], row["count"]) for row in emitted} == expected
    assert len(emitted) == len(expected)


class Sorting(Operator):
    """Sends even numbers to one stage, odd ones to another, and zero to both."""

    next_schema = "key long, n long"
    output_schema = "key long"

    def __init__(self, odd: str = "odd") -> None:
        self._odd = odd

    def handle_batch(self, rows: pa.Table, _state: State, _context: Context) -> Any:
        for row in rows.select(["key", "n"]).to_pylist():
            if row["n"]:
                yield ToNext([row], to="even" if row["n"] % 2 == 0 else self._odd)
            else:
                yield ToNext([row])
                yield ToSink([{"key": row["key"]}])


def test_rows_go_to_one_follower_or_to_all() -> None:
    keep = stateless(lambda rows: rows, "key long, n long")
    stages = [
        Stage(Sorting(), name="sort"),
        Stage(keep, name="even", inputs=["sort"]),
        Stage(keep, name="odd", inputs=["sort"]),
    ]
    tester = OperatorTester(stages, key="key", schema=SCHEMA)
    tester.run([[{"key": n, "t": 0, "n": n} for n in range(5)]])
    assert {name: sorted(row.get("n", 0) for row in rows) for name, rows in tester.results.items()} == {
        "sort": [0],
        "even": [0, 2, 4],
        "odd": [0, 1, 3],
    }
    wrong = OperatorTester([Stage(Sorting("nowhere"), name="sort"), *stages[1:]], key="key", schema=SCHEMA)
    with pytest.raises(InvalidOutput, match=r"'nowhere', but the stages behind it are \['even', 'odd'\]"):
        wrong.run([[{"key": 1, "t": 0, "n": 1}]])


def test_an_input_may_feed_several_stages_by_other_keys() -> None:
    by_ad = Stage(Aggregate(n=F.count()), key="id", name="by ad", inputs=["ads"])
    by_number = Stage(Aggregate(n=F.count()), key="ad", name="by number", inputs=["ads"])
    clicks = Stage(Aggregate(n=F.count()), key="ad_id", name="clicks by ad", inputs=["clicks"])
    tester = OperatorTester([by_ad, by_number, clicks], inputs=inputs())
    ads = [{"id": n % 2, "shown": 0, "ad": n} for n in range(4)]
    tester.run([{"ads": ads, "clicks": [{"ad_id": 1, "clicked": 0, "click": 0}]}])
    assert tester.state(0, "by ad") == {"n": 2}
    assert tester.state(3, "by number") == {"n": 1}
    assert tester.state(1, "clicks by ad") == {"n": 1}


def test_batches_of_several_inputs_are_mappings_of_known_names() -> None:
    join = Stage(IntervalJoin(AD, CLICK, upper="1 ms"), key="id")
    with pytest.raises(InvalidJob, match=r"mapping from their names to rows"):
        OperatorTester(join, inputs=inputs()).run([[{"id": 1}]])
    with pytest.raises(InvalidJob, match=r"input 'add'. Name one of 'ads', 'clicks'"):
        OperatorTester(join, inputs=inputs()).run([{"add": []}])
    with pytest.raises(InvalidJob, match=r"input 'ads' has no schema"):
        OperatorTester(join, inputs=[Input(name="ads")]).run([{}])
