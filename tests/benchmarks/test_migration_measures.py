"""A benchmark that measures wrongly is worse than none."""

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from benchmarks.migration.goals import WARM, Goal, list_warm_goals
from benchmarks.migration.measures import (
    Move,
    Responses,
    Window,
    measure_silence,
    summarise_affected,
    summarise_entered,
)
from benchmarks.migration.source import ClockedReader
from benchmarks.migration.stream import start_clock
from benchmarks.migration.throughput import PACED, SATURATED, Throughput, compute_rows_per_second
from benchmarks.migration.trial import Trial

SECOND = 1_000_000
KEYS = 1_000


def responses(*records: tuple[float, float, int]) -> Responses:
    """From (entered, readable, task), in seconds; stored half a second before it could be read."""
    entered, readable, task = (np.array(column) for column in zip(*records, strict=True))
    entered_us, readable_us = (entered * SECOND).astype(np.int64), (readable * SECOND).astype(np.int64)
    return Responses(entered_us, readable_us - SECOND // 2, readable_us, task.astype(np.int64))


def window(began: float, ended: float) -> Window:
    return Window(round(began * SECOND), round(ended * SECOND))


def test_a_record_that_waits_through_a_window_is_touched_by_it_and_not_within_it() -> None:
    seen = responses((1, 9, 0), (5, 6, 0), (7, 7.5, 0))

    assert summarise_affected(seen, window(4, 6.5)).peak == 8_000
    assert summarise_affected(seen, window(4, 6.5)).records == 2
    assert summarise_entered(seen, window(4, 6.5)).peak == 1_000


def test_the_longest_silence_is_that_of_the_task_that_is_worst_off_among_those_asked_for() -> None:
    seen = responses((0, 1, 0), (1, 2, 0), (0, 1, 1), (4, 5, 1), (0, 1, 2), (8, 9, 2))

    assert measure_silence(seen, frozenset({0, 1}), window(2, 3)).readable == pytest.approx(4)
    assert measure_silence(seen, frozenset({0, 1, 2}), window(2, 3)).readable == pytest.approx(8)
    assert measure_silence(seen, frozenset({0, 1}), window(6, 7)).readable == 0


def test_rows_of_a_batch_are_spread_over_the_time_since_the_batch_before() -> None:
    moments = np.array([1, 2, 4]) * SECOND
    rows = np.array([100, 100, 100])

    assert compute_rows_per_second(moments, rows, [window(1, 2)]) == pytest.approx(100)
    assert compute_rows_per_second(moments, rows, [window(2, 3)]) == pytest.approx(50)


def test_warm_migrations_are_compared_with_all_time_without_a_migration() -> None:
    steady = [(at, at + 0.2, 0) for at in (0, 10, 20)]
    seen = responses(*steady, (5, 5.3, 0), (15, 15.25, 0), (10.5, 11, 0))
    out, back = (Move(window(at, at + 1), window(at, at + 1)) for at in (5, 15))
    trial = Trial(WARM, seen, (window(0, 1), window(10, 11), window(20, 21)), out, back)
    speeds = {(WARM, PACED): Throughput(100.0, 96.0, 90.0), (WARM, SATURATED): Throughput(100.0, 80.0, 70.0)}
    goals = list_warm_goals(trial, speeds, state_mb=200.0)
    assert [round(goal.found) for goal in goals] == [300, 300, 4, 20]
    assert [round(goal.limit) for goal in goals] == [596, 750, 5, 10]
    assert [goal.verdict for goal in goals] == ["met", "met", "met", "missed"]
    assert [round(goal.limit) for goal in list_warm_goals(trial, {}, state_mb=2_000.0)][:2] == [596, 1_000]


def test_a_goal_that_was_not_measured_is_neither_met_nor_missed() -> None:
    assert Goal("peak", 1.0, 2.0, "s").verdict == "met"
    assert Goal("peak", 3.0, 2.0, "s").verdict == "missed"
    assert Goal("peak", 3.0, float("nan"), "s").verdict == "not measured"


def reader(clock: Path) -> ClockedReader:
    options = {"keys": KEYS, "filling_rows": 300, "payload_bytes": 8, "rows": 100, "tick_us": 10_000}
    return ClockedReader({"clock": str(clock), **{name: str(value) for name, value in options.items()}})


def read(source: ClockedReader, start: int, stop: int) -> pa.Table:
    found = [batch for part in source.partitions({"tick": start}, {"tick": stop}) for batch in source.read(part)]
    return pa.Table.from_batches(found)


def test_the_source_gives_every_key_once_and_then_waits_for_its_clock(tmp_path: Path) -> None:
    source = reader(tmp_path / "clock")
    tick = source.initialOffset()
    while (later := source.latestOffset(tick, ReadAllAvailable())) != tick:
        tick = later

    assert sorted(read(source, 0, tick["tick"])["key"].to_pylist()) == list(range(KEYS))


def test_records_enter_when_the_clock_says_so_however_late_they_are_read(tmp_path: Path) -> None:
    source = reader(tmp_path / "clock")
    began = start_clock(tmp_path / "clock")
    time.sleep(0.1)
    latest = source.latestOffset({"tick": 4}, ReadAllAvailable())["tick"]
    entered = np.unique(read(source, 4, latest)["entered"].to_numpy())

    assert latest - 4 >= 10
    assert list(entered) == [began + tick * 10_000 for tick in range(latest - 4)]


def test_a_tick_that_is_read_again_has_the_same_records(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text(json.dumps({"began_us": 7}))
    source = reader(tmp_path / "clock")

    assert read(source, 2, 9).equals(read(source, 2, 9))
