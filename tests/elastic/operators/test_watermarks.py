"""Watermarks of inputs, and how far time has come in the stages behind them."""

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from elastic import local_run
from elastic.errors import InvalidEventTime, UnknownColumn
from elastic.operators import CountByKey
from elastic.operators.graph import InputSpec, StageClock, Watermarks
from elastic.operators.graph.clocks import ClockedStage, Way, derive_clocks
from elastic.operators.schemas import to_schema
from elastic.operators.testing import OperatorTester
from storage.state import BatchTime, InputTime

SCHEMA = pa.schema([("key", pa.int64()), ("ts", pa.int64())])
LAGGING = (StageClock((Way(0, 2, 0),), (Way(0, 2, 0),)),)


def spec(name: str, delay_ms: int = 0, idle_after_ms: int | None = None, event_time: str | None = "ts") -> InputSpec:
    return InputSpec(name, SCHEMA, (), event_time, delay_ms, idle_after_ms)


@pytest.mark.parametrize("kind", ["long", "int", "date", "timestamp", "timestamp_ntz"])
def test_event_times_are_times_or_milliseconds(kind: str) -> None:
    InputSpec("a", to_schema(f"key long, at {kind}"), (), "at")


@pytest.mark.parametrize("kind", ["string", "double", "boolean", "array<long>"])
def test_columns_of_other_types_are_refused_as_event_times_before_anything_starts(kind: str) -> None:
    schema = to_schema(f"key long, at {kind}")
    with pytest.raises(InvalidEventTime, match="'at' of type"):
        OperatorTester(CountByKey(), key="key", schema=schema, watermark=("at", 0)).run([])
    with pytest.raises(InvalidEventTime, match="'at' of type"):
        local_run([], key="key", operator=CountByKey(), schema=schema, event_time="at")
    with pytest.raises(UnknownColumn, match="'then'"):
        local_run([], key="key", operator=CountByKey(), schema=schema, event_time="then")


def advance(marks: Watermarks, *batches: tuple[int, Any]) -> list[BatchTime]:
    """Return the clocks of batches, each given by its processing time and the latest event times of inputs."""
    times: list[BatchTime] = []
    for timestamp_ms, seen in batches:
        times.append(marks.advance(times[-1] if times else None, len(times), timestamp_ms, seen))
    return times


def test_one_input_needs_two_watermarks_only() -> None:
    times = advance(Watermarks((spec("a", 10),)), (1_000, {0: 500}), (2_000, {}), (3_000, {0: 400}), (4_000, {0: None}))
    assert [time[2:] for time in times] == [(None, 490, ()), (490, 490, ()), (490, 490, ()), (490, 490, ())]


def test_the_watermark_of_a_job_is_the_least_of_its_inputs() -> None:
    times = advance(Watermarks((spec("a"), spec("b", 100))), (0, {0: 900}), (1, {1: 300}), (2, {0: 950, 1: 1_200}))
    assert [time.next_watermark_ms for time in times] == [None, 200, 950]
    assert [time.watermark_ms for time in times] == [None, None, 200]


def test_an_input_without_event_times_holds_nothing_back() -> None:
    times = advance(Watermarks((spec("a"), spec("table", event_time=None))), (0, {0: 900, 1: None}), (1, {0: 950}))
    assert [time.next_watermark_ms for time in times] == [900, 950]


def test_an_idle_input_follows_the_least_of_the_others_and_never_goes_back() -> None:
    marks = Watermarks((spec("a"), spec("b"), spec("c", idle_after_ms=1_000)))
    times = advance(
        marks,
        (0, {0: 100, 1: 200, 2: 50}),
        (999, {0: 300}),  # c is not idle yet
        (1_000, {}),  # c is idle, and follows b
        (1_500, {2: 60}),  # and stays where it was
        (2_400, {1: 400}),  # c had rows less than a second ago
        (2_500, {}),
    )
    assert [time.inputs[2].watermarks[0] for time in times] == [50, 50, 200, 200, 200, 300]
    assert [time.next_watermark_ms for time in times] == [50, 50, 200, 200, 200, 300]


def test_no_input_is_idle_for_the_time_in_which_the_job_stood_still() -> None:
    marks = Watermarks((spec("a"), spec("b", idle_after_ms=1_000)))
    [before] = advance(marks, (0, {0: 900, 1: 100}))
    assert marks.next_idle_ms(before) == 1_000
    assert marks.next_idle_ms(before, began_ms=50_000) == 51_000
    after = marks.advance(before, 1, 50_200, {0: 950}, 50_000)
    assert (after.next_watermark_ms, after.inputs[1].active_ms) == (100, 50_000)
    assert marks.advance(after, 2, 51_000, {}, 50_000).next_watermark_ms == 950


def test_when_all_inputs_are_idle_the_greatest_watermark_holds() -> None:
    marks = Watermarks((spec("a", idle_after_ms=1_000), spec("b", idle_after_ms=2_000)))
    times = advance(marks, (0, {0: 100, 1: 900}), (1_000, {}), (2_000, {}))
    assert [time.next_watermark_ms for time in times] == [100, 900, 900]


def test_the_next_idle_input_is_known_if_that_lets_time_pass() -> None:
    marks = Watermarks((spec("a"), spec("b", idle_after_ms=1_000), spec("c", idle_after_ms=500)))
    [first] = advance(marks, (0, {0: 100, 1: 50, 2: 900}))
    assert marks.next_idle_ms(first) == 1_000  # c is ahead anyway
    [_, second] = advance(marks, (0, {0: 100, 1: 50, 2: 900}), (1_000, {}))
    assert second.next_watermark_ms == 100
    assert marks.next_idle_ms(second) is None
    assert marks.next_idle_ms(None) is None


def test_older_watermarks_are_kept_as_far_as_a_stage_lags_behind() -> None:
    times = advance(Watermarks((spec("a"),), LAGGING), *((n, {0: 10 * n}) for n in range(5)))
    assert times[4].inputs == (InputTime(4, (40, 30, 20, 10)),)
    assert times[1].inputs == (InputTime(1, (10, 0, None, None)),)
    assert [times[4].watermark(0, lag) for lag in (-1, 0, 1, 2, 9)] == [40, 30, 20, 10, 10]


def test_a_job_that_needs_more_history_than_it_has_continues_with_the_oldest() -> None:
    before = BatchTime(7, 1_000, 100, 200)
    after = Watermarks((spec("a"),), LAGGING).advance(before, 8, 2_000, {0: 300})
    assert (after.watermark_ms, after.next_watermark_ms) == (200, 300)
    assert after.inputs == (InputTime(2_000, (300, 200, 100, 100)),)


@pytest.mark.parametrize("time", [BatchTime(3, 5, None, 7), BatchTime(3, 5, 6, 7, (InputTime(5, (7, 6, None)),))])
def test_clocks_survive_json_and_plain_ones_are_what_they_were(time: BatchTime) -> None:
    assert BatchTime.from_json(time.to_json()) == time
    assert BatchTime.from_json([3, 5, None, 7]) == BatchTime(3, 5, None, 7)
    assert BatchTime(3, 5, None, 7).to_json() == [3, 5, None, 7]


# Stages.


def stage(
    inputs: tuple[int, ...] = (), stages: tuple[int, ...] = (), timers: bool = True, delay: int = 0
) -> ClockedStage:
    return ClockedStage(inputs, stages, timers, delay)


@pytest.mark.parametrize(
    ("stages", "rows", "timers"),
    [
        ([stage((0,))], [(0, 0, 0)], [(0, -1, 0)]),
        ([stage((0,)), stage((), (0,))], [(0, 0, 0)], [(0, 0, 0)]),
        ([stage((0,), timers=False), stage((), (0,))], [(0, 0, 0)], [(0, 0, 0)]),
        ([stage((0,), delay=5), stage((), (0,)), stage((), (1,))], [(0, 1, 5)], [(0, 1, 5)]),
        ([stage((0,)), stage((), (0,), timers=False), stage((), (1,))], [(0, 0, 0)], [(0, 0, 0)]),
        ([stage((0, 1))], [(0, 0, 0), (1, 0, 0)], [(0, -1, 0), (1, -1, 0)]),
        # An input, and a stage that reads the same one: the longer way counts.
        ([stage((0,), delay=3), stage((0,), (0,))], [(0, 0, 3)], [(0, 0, 3)]),
        # A diamond of which one way is longer, and the other has the greater delay.
        (
            [stage((0,), delay=9), stage((), (0,)), stage((), (1,)), stage((0,), delay=20), stage((), (2, 3))],
            [(0, 0, 20), (0, 2, 9)],
            [(0, 0, 20), (0, 2, 9)],
        ),
    ],
)
def test_the_clock_of_a_stage_follows_from_the_ways_to_it(
    stages: list[ClockedStage], rows: list[Any], timers: list[Any]
) -> None:
    assert derive_clocks(stages)[-1] == StageClock(tuple(Way(*way) for way in rows), tuple(Way(*way) for way in timers))


def test_a_stage_that_lags_behind_is_drained_by_empty_batches() -> None:
    clocks = derive_clocks([stage((0,)), stage((), (0,)), stage((), (1,))])
    marks = Watermarks((spec("a"),), clocks)
    times = advance(marks, (0, {0: 100}), (1, {0: 200}), (2, {}), (3, {}))
    assert [clocks[2].watermark_of_timers(time) for time in times] == [None, None, 100, 200]
    assert [marks.is_draining(time, [(2, 150)]) for time in times] == [False, True, True, False]
    assert not marks.is_draining(times[1], [(2, 201)])  # due later than all rows so far
    assert not marks.is_draining(times[1], [(0, 150)])  # the first stage does not lag
    assert not marks.is_draining(None, [(2, 1)])


@given(st.data())
def test_no_row_comes_to_a_stage_that_is_late_there(data: st.DataObject) -> None:
    """Every stage emits, at its timers and for its rows, the earliest times that it may: none is late behind it."""
    count = data.draw(st.integers(1, 5))
    stages = []
    for number in range(count):
        before = tuple(sorted(data.draw(st.sets(st.integers(0, number - 1), max_size=2)))) if number else ()
        inputs = tuple(sorted(data.draw(st.sets(st.integers(0, 1), min_size=0 if before else 1, max_size=2))))
        stages.append(stage(inputs, before, data.draw(st.booleans()), data.draw(st.sampled_from([0, 3, 40]))))
    clocks = derive_clocks(stages)
    marks = Watermarks((spec("a"), spec("b")), clocks)
    seen = st.dictionaries(st.integers(0, 1), st.integers(0, 500))
    times = advance(marks, *((n, data.draw(seen)) for n in range(data.draw(st.integers(1, 8)))))
    for number, each in enumerate(stages):
        earliest = None  # what its timers told in the batch before
        for time in times:
            rows, timers = clocks[number].watermark_of_rows(time), clocks[number].watermark_of_timers(time)
            told = [rows, earliest] if each.has_timers else [rows]
            for follower, other in enumerate(stages):
                if number in other.stages:
                    limit = clocks[follower].watermark_of_timers(time)
                    assert limit == clocks[follower].watermark_of_rows(time) or other.inputs
                    if limit is not None:
                        assert all(one is not None and one - each.delay_ms >= limit for one in told)
            earliest = timers
