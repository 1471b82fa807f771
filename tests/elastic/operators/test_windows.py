"""Windows and sessions give what a batch computation over all rows that are not late gives, whatever fails."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from elastic.errors import InvalidJob, InvalidSetting, UnknownColumn
from elastic.operators import Aggregate, Operator, Stage, session_window, stateless, window, with_late_rows
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know
from elastic.operators.aggregates.sessions import merge_intervals
from elastic.operators.testing import InputBatch, OperatorTester, Rekey
from elastic.operators.windows import Window
from tests.elastic.operators.event_streams import DELAY_MS, SCHEMA, TASKS, Row, Scenario, canonical, scenarios

FUNCTIONS: dict[str, Any] = {
    "rows": F.count(),
    "known": F.count("x"),
    "total": F.sum("x"),
    "least": F.min("x"),
    "most": F.max("x"),
    "mean": F.mean("x"),
    "different": F.approx_count_distinct("x", rsd=0.02),
}
sizes = st.sampled_from([(40, 40, 0), (60, 20, 0), (50, 20, 5), (30, 25, 10), (7, 7, 3), (40, 40, -10)])
latenesses = st.sampled_from([0, 15, 100])


def aggregate(rows: Sequence[Row]) -> Row:
    """The functions again, on a list of rows."""
    known = [row["x"] for row in rows if row["x"] is not None]
    return {
        "rows": len(rows),
        "known": len(known),
        "total": sum(known) if known else None,
        "least": min(known, default=None),
        "most": max(known, default=None),
        "mean": sum(known) / len(known) if known else None,
        "different": len(set(known)),
    }


def windows_of(t: int, size: int, slide: int, start: int) -> list[tuple[int, int]]:
    """All windows around a time, found by trying."""
    begins = range((t - size) // slide * slide - slide + start % slide, t + slide + 1)
    return [(begin, begin + size) for begin in begins if (begin - start) % slide == 0 and begin <= t < begin + size]


def expected_windows(scenario: Scenario, shape: tuple[int, int, int], lateness: int) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for batch, _, watermark in scenario.clocked():
        for row in batch:
            for begin, end in [] if row["t"] is None else windows_of(row["t"], *shape):
                if watermark is None or end + lateness > watermark:
                    groups[row["key"], begin, end].append(row)
    return [
        {"key": key, "window": {"start": begin, "end": end}, **aggregate(rows)}
        for (key, begin, end), rows in groups.items()
    ]


def ms(duration: int) -> str:
    return f"{duration} ms"


def over_windows(shape: tuple[int, int, int], **options: Any) -> Operator:
    size, slide, start = shape
    return Aggregate(**FUNCTIONS).over(Window(size * 1_000, slide * 1_000, start * 1_000), **options)


def new_tester(operator: Operator) -> OperatorTester:
    stage = Stage(operator, grouping="table")
    return OperatorTester(stage, key="key", schema=SCHEMA, tasks=TASKS, watermark=("t", DELAY_MS))


@given(scenarios(), sizes, latenesses)
@settings(deadline=None)
def test_every_window_is_emitted_once_and_is_that_of_a_batch_computation(
    scenario: Scenario, shape: tuple[int, int, int], lateness: int
) -> None:
    tester = new_tester(over_windows(shape, time="t", lateness=ms(lateness)))
    assert canonical(scenario.run(tester)) == canonical(expected_windows(scenario, shape, lateness))


@given(scenarios(), sizes, latenesses)
@settings(deadline=None)
def test_the_last_update_of_a_window_is_that_of_a_batch_computation(
    scenario: Scenario, shape: tuple[int, int, int], lateness: int
) -> None:
    tester = new_tester(over_windows(shape, time="t", lateness=ms(lateness), output_mode="update"))
    last: dict[Any, Row] = {}
    for row in scenario.run(tester):
        key = row["key"], row["window"]["start"]
        assert key not in last or row["rows"] > last[key]["rows"], "an update must change something"
        last[key] = row
    assert canonical(list(last.values())) == canonical(expected_windows(scenario, shape, lateness))


@given(scenarios(), st.sampled_from([(2_000, 2_000, 0), (3_000, 1_000, 500), (5_000, 2_000, 0)]))
@settings(deadline=None)
def test_windows_of_processing_time_hold_the_rows_of_their_batches(
    scenario: Scenario, shape: tuple[int, int, int]
) -> None:
    timed = [[{**row, "t": now} for row in batch] for batch, now, _ in scenario.clocked()]
    expected = expected_windows(Scenario(timed, scenario.faults), shape, 1_000_000)
    emitted = [
        {**row, "window": {name: round(at.timestamp() * 1_000) for name, at in row["window"].items()}}
        for row in scenario.run(new_tester(over_windows(shape)))
    ]
    # The values of a row are those of the original rows, which differ from the timed ones in their time alone.
    assert canonical(emitted) == canonical(expected)


def expected_sessions(scenario: Scenario, gap: int, lateness: int) -> list[Row]:
    open_: list[tuple[Any, int, int, list[Row]]] = []
    emitted = []
    for batch, _, watermark in [*scenario.clocked(), ([], 0, 10**9)]:
        complete = [each for each in open_ if watermark is not None and each[2] + lateness <= watermark]
        emitted += complete
        open_ = [each for each in open_ if each not in complete]
        for row in batch:
            t = row["t"]
            if t is None or (watermark is not None and t + gap + lateness <= watermark):
                continue
            merged = [each for each in open_ if each[0] == row["key"] and each[1] <= t + gap and t <= each[2]]
            open_ = [each for each in open_ if each not in merged]
            begin, end = min([t, *(each[1] for each in merged)]), max([t + gap, *(each[2] for each in merged)])
            open_.append((row["key"], begin, end, [*(row for each in merged for row in each[3]), row]))
    return [
        {"key": key, "session_window": {"start": begin, "end": end}, **aggregate(rows)}
        for key, begin, end, rows in emitted
    ]


@given(scenarios(), st.sampled_from([1, 10, 35]), latenesses)
@settings(deadline=None)
def test_every_session_is_emitted_once_and_is_that_of_a_batch_computation(
    scenario: Scenario, gap: int, lateness: int
) -> None:
    sessions = Aggregate(**FUNCTIONS).over(session_window(ms(gap)), time="t", lateness=ms(lateness))
    assert canonical(scenario.run(new_tester(sessions))) == canonical(expected_sessions(scenario, gap, lateness))


@given(scenarios(), st.sampled_from(["windows", "sessions"]), latenesses, st.sampled_from(["sink", "next"]))
@settings(deadline=None)
def test_a_row_is_either_in_a_window_or_emitted_as_late(
    scenario: Scenario, kind: str, lateness: int, late: str
) -> None:
    shape = window("40 ms", "20 ms") if kind == "windows" else session_window("20 ms")
    operator = Aggregate(**FUNCTIONS).over(shape, time="t", lateness=ms(lateness), late=late)  # type: ignore[arg-type]
    align, length = (20, 40) if kind == "windows" else (1, 20)
    expected_late = [
        row
        for batch, _, watermark in scenario.clocked()
        for row in batch
        if row["t"] is not None and watermark is not None and row["t"] // align * align + length + lateness <= watermark
    ]
    expected = (
        expected_windows(scenario, (40, 20, 0), lateness)
        if kind == "windows"
        else (expected_sessions(scenario, 20, lateness))
    )
    passes = stateless(lambda rows: rows, _results(operator) if late == "sink" else SCHEMA)
    tester = OperatorTester(
        [Stage(operator, name="windows"), Stage(passes, name="passes")],
        key="key",
        schema=SCHEMA,
        tasks=TASKS,
        watermark=("t", DELAY_MS),
    )
    scenario.faults = [[fault for fault in faults if not hasattr(fault, "tasks")] for faults in scenario.faults]
    scenario.run(tester)
    results, late_rows = ("passes", "windows") if late == "sink" else ("windows", "passes")
    assert canonical(tester.results[results]) == canonical(expected)
    assert canonical(tester.results[late_rows]) == canonical(expected_late)


def _results(operator: Operator) -> pa.Schema:
    bound = operator.bind(("key",), SCHEMA)
    schema = bound.next_schema
    assert isinstance(schema, pa.Schema)
    return schema


def row(t: int, key: str = "a") -> Row:
    return {"key": key, "t": t, "x": 1}


def test_late_rows_are_the_results_of_a_stage_of_their_own() -> None:
    counts = Aggregate(rows=F.count()).over(window("10 ms"), time="t", late="sink")
    tester = OperatorTester(with_late_rows(counts), key="key", schema=SCHEMA, watermark=("t", 0))
    tester.run([[row(1)], [row(20)], [row(2)], [row(40)]])
    assert tester.results["late-rows"] == [row(2)]
    assert [result["window"]["start"] for result in tester.results["results"]] == [0, 20]


@pytest.mark.parametrize("shape", [window("10 ms"), window("40 ms", "10 ms"), session_window("10 ms")])
def test_complete_windows_and_their_keys_leave_no_state(shape: Any) -> None:
    tester = OperatorTester(
        Aggregate(rows=F.count()).over(shape, time="t"), key="key", schema=SCHEMA, tasks=1, watermark=("t", 0)
    )
    sizes = []
    for second in range(40):
        tester.run([[row(second * 50 + number, f"{second}-{number}") for number in range(40)]])
        unit = tester._running.state(tester._running.routing.units(0)[0])
        sizes.append(unit.value.nbytes)
    assert max(sizes[10:]) <= max(sizes[:10]) * 1.2


def test_windows_of_a_later_stage_wait_for_the_rows_of_their_batch() -> None:
    """Rows come to the second stage after its timers, so its windows are complete a batch later."""
    first = stateless(lambda rows: rows, SCHEMA)
    second = Aggregate(rows=F.count()).over(window("10 ms"), time="t")
    tester = OperatorTester([first, second], key="key", schema=SCHEMA, watermark=("t", 0))
    assert tester.run([[row(1)], [row(2), row(30)]]) == []
    assert tester.run([InputBatch([])]) == [{"key": "a", "window": {"start": 0, "end": 10}, "rows": 2}]


def test_open_windows_can_be_queried() -> None:
    tester = new_tester(over_windows((40, 20, 0), time="t"))
    tester.run([[row(25), row(45)]])
    assert [(each["window"]["start"], each["rows"]) for each in tester.state("a")] == [(0, 1), (20, 2), (40, 1)]
    assert tester.state("unknown") == []


def test_timestamps_are_windowed_to_the_microsecond() -> None:
    schema = pa.schema([("key", pa.string()), ("t", pa.timestamp("ns", "Europe/Berlin"))])
    times = pa.array([9_999_999_999, 10_000_000_000], pa.timestamp("ns", "Europe/Berlin"))
    table = pa.table({"key": ["a", "a"], "t": times}, schema=schema)
    tester = OperatorTester(Aggregate(rows=F.count()).over(window("10 s"), time="t"), key="key", schema=schema)
    tester.run([table])
    assert [each["rows"] for each in tester.state("a")] == [1, 1]
    assert str(tester.state("a")[1]["window"]["start"]) == "1970-01-01 01:00:10+01:00"


def test_intervals_that_do_not_fit_into_a_word_are_merged_too() -> None:
    owners = np.array([2**40, 2**40, 5, 2**40])
    starts = np.array([0, 2**50, 7, 10])
    merged = merge_intervals(owners, starts, starts + 20)
    assert merged.owners.tolist() == [5, 2**40, 2**40]
    assert merged.starts.tolist() == [7, 0, 2**50]
    assert merged.ends.tolist() == [27, 30, 2**50 + 20]
    assert merged.session_of.tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: window("10 s", "20 s"), InvalidSetting),
        (lambda: window("0 s"), InvalidSetting),
        (lambda: window(10), InvalidSetting),  # type: ignore[arg-type]
        (lambda: Aggregate(), InvalidJob),
        (lambda: Aggregate(ttl="1 hour", n=F.count()).over(window("1 s")), InvalidJob),
        (lambda: Aggregate(n=F.count()).over(window("1 s"), late="sink"), InvalidJob),
        (lambda: Aggregate(n=F.count()).over(window("1 s"), time="t", late="somewhere"), InvalidSetting),  # type: ignore[arg-type]
        (lambda: Aggregate(n=F.count()).over(window("1 s"), output_mode="complete"), InvalidSetting),  # type: ignore[arg-type]
        (lambda: Aggregate(n=F.count()).over(session_window("1 s"), output_mode="update"), InvalidSetting),
        (lambda: new_tester(Aggregate(n=F.count()).over(window("1 s"), time="nowhere")).run([[row(1)]]), UnknownColumn),
        (lambda: new_tester(Aggregate(n=F.count()).over(window("1 s"), time="key")).run([[row(1)]]), InvalidJob),
        (lambda: new_tester(Aggregate(n=F.count()).over(window("1 s"), lateness="1 s")).run([[row(1)]]), InvalidJob),
        (lambda: new_tester(Aggregate(window=F.count()).over(window("1 s"), time="t")).run([[row(1)]]), InvalidJob),
        (lambda: new_tester(Aggregate(n=F.sum("key"))).run([[row(1)]]), InvalidJob),
        (lambda: new_tester(Aggregate(n=F.sum("nowhere"))).run([[row(1)]]), UnknownColumn),
    ],
)
def test_what_cannot_work_is_refused_before_it_starts(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=14))
@settings(deadline=None)
def test_intervals_are_merged_where_they_overlap_or_touch(given_: list[tuple[int, int, int]]) -> None:
    owners, starts, lengths = (np.array(column, np.int64) for column in zip(*given_, strict=True))
    merged = merge_intervals(owners, starts, starts + lengths)
    expected: list[tuple[int, int, int]] = []
    for owner, start, end in sorted((owner, start, start + length) for owner, start, length in given_):
        if expected and expected[-1][0] == owner and start <= expected[-1][2]:
            expected[-1] = (owner, expected[-1][1], max(end, expected[-1][2]))
        else:
            expected.append((owner, start, end))
    found = [each.tolist() for each in merged[1:]]
    assert list(zip(*found, strict=True)) == expected
    assert all(
        expected[session][0] == owner and expected[session][1] <= start < expected[session][2]
        for session, (owner, start, _) in zip(merged.session_of.tolist(), given_, strict=True)
    )


def test_rows_exactly_a_gap_apart_are_in_the_same_session() -> None:
    tester = new_tester(Aggregate(rows=F.count()).over(session_window("10 ms"), time="t"))
    tester.run([[row(0), row(10), row(21)]])
    assert [each["rows"] for each in tester.state("a")] == [2, 1]


@pytest.mark.parametrize("shape", [window("10 ms"), window("20 ms", "10 ms"), session_window("10 ms")])
def test_windows_of_keys_that_moved_are_emitted_in_the_batch_in_which_they_are_complete(shape: Any) -> None:
    """The unit that they move to has windows that end later, and is to look at its state earlier now."""
    tester = new_tester(Aggregate(rows=F.count()).over(shape, time="t"))
    tester.run([[row(500, "b")], Rekey({"b": 3}), [row(499, "a")], Rekey({"a": 3})])
    tester.run([[row(481, "c")], Rekey({"c": 3})])
    emitted = tester.run([InputBatch([], next_watermark_ms=495)])
    assert {each["key"] for each in emitted} == {"c"}
