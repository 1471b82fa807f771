"""A job that stops and starts again: its watermark, its source offsets, its key types, its sink; and timers at rest."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from elastic import errors
from elastic.operators import Context, KeyedOperator
from tests.spark.jobs import Feed, start, until

pytestmark = pytest.mark.spark

EVENT_TIME: dict[str, Any] = {"event_time": "ts", "watermark_delay": "0 seconds"}


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "feed")


class Windows(KeyedOperator):
    """Counts rows per key and minute, emits a window when the watermark passes its end, and ignores late rows."""

    output_schema = "key string, minute long, rows long"

    def initial_state(self) -> dict[int, int]:
        return {}

    def handle_key(self, _key: str, rows: Iterable[dict[str, Any]], state: Any, context: Context) -> None:
        windows = dict(state.get())
        for row in rows:
            minute = int(row["ts"].timestamp()) // 60
            if context.watermark_ms is None or (minute + 1) * 60_000 > context.watermark_ms:
                windows[minute] = windows.get(minute, 0) + 1
                context.set_timer((minute + 1) * 60_000, kind="event", name=str(minute))
        state.update(windows)

    def handle_expired(self, key: str, timer: Any, state: Any, _context: Context) -> Iterable[dict[str, Any]]:
        windows = dict(state.get())
        minute = int(timer.name)
        yield {"key": key, "minute": minute, "rows": windows.pop(minute)}
        state.update(windows)


class Reminder(KeyedOperator):
    """Emits a key half a second after it came, by processing time."""

    output_schema = "key string"

    def initial_state(self) -> int:
        return 0

    def handle_key(self, _key: str, _rows: Iterable[dict[str, Any]], state: Any, context: Context) -> None:
        state.update(state.get() + 1)
        context.set_timer(context.timestamp_ms + 500, kind="processing")

    def handle_expired(self, key: str, _timer: Any, _state: Any, _context: Context) -> Iterable[dict[str, Any]]:
        yield {"key": key}


def at(key: str, clock: str) -> dict[str, Any]:
    return {"key": key, "value": 1, "ts": f"2024-05-01T{clock}Z"}


@pytest.mark.parametrize("drain", [True, False])
def test_a_restarted_job_keeps_its_watermark_and_emits_no_window_twice(feed: Feed, tmp_path: Path, drain: bool) -> None:
    store = tmp_path / "store"
    job = start(feed.frame(), store, operator=Windows(), sink="store", **EVENT_TIME)
    for row in (at("a", "10:00:30"), at("b", "10:05:00")):
        feed.send(row)
        job.process_all_available()
    job.stop(drain=drain)
    with start(feed.frame(), store, operator=Windows(), **EVENT_TIME) as again:
        feed.send(at("a", "10:00:40"))  # late: its window was emitted by the run before
        again.process_all_available()
        feed.send(at("b", "10:09:00"))
        again.process_all_available()
        emitted = [(row["key"], row["rows"]) for row in again.collected().to_pylist()]
    assert emitted == [("a", 1), ("b", 1)]


def test_a_checkpoint_that_lost_only_its_newest_batch_is_noticed_before_new_rows_are_skipped(
    feed: Feed, tmp_path: Path
) -> None:
    store, checkpoint, copy = tmp_path / "store", tmp_path / "checkpoint", tmp_path / "copy"
    with start(feed.frame(), store, checkpoint=checkpoint.as_uri()) as job:
        for key in "ab":
            if key == "b":
                shutil.copytree(checkpoint, copy)
            feed.send_keys(key)
            job.process_all_available()
    feed.send_keys("c")
    job = start(feed.frame(), store, checkpoint=copy.as_uri())
    with pytest.raises(errors.CheckpointMismatch) as caught:
        job.await_termination(60)
    assert (caught.value.next_batch, caught.value.last_batch) == (1, 1)
    with start(feed.frame(), store, checkpoint=checkpoint.as_uri()) as job:
        job.process_all_available()
        assert [job.state(key) for key in "abc"] == [1, 1, 1]


def test_a_checkpoint_that_lost_only_its_newest_commit_repeats_that_batch_without_effect(
    feed: Feed, tmp_path: Path
) -> None:
    store, checkpoint = tmp_path / "store", tmp_path / "checkpoint"
    with start(feed.frame(), store, checkpoint=checkpoint.as_uri()) as job:
        for key in "ab":
            feed.send_keys(key)
            job.process_all_available()
    for entry in (checkpoint / "commits").glob("*1*"):
        entry.unlink()
    feed.send_keys("c")
    with start(feed.frame(), store, checkpoint=checkpoint.as_uri()) as job:
        job.process_all_available()
        assert [job.state(key) for key in "abc"] == [1, 1, 1]


def test_another_key_type_is_refused(feed: Feed, tmp_path: Path) -> None:
    feed.send({"key": 5})
    with start(feed.frame("key int"), tmp_path / "store") as job:
        job.process_all_available()
    with pytest.raises(errors.IncompatibleRestart, match="key types"):
        start(feed.frame("key long"), tmp_path / "store")
    with start(feed.frame("key int"), tmp_path / "store") as job:
        assert job.state(5) == 1


def test_a_job_may_change_its_sink_and_back(feed: Feed, tmp_path: Path) -> None:
    counted = []
    for key, sink in (("a", "none"), ("b", "memory"), ("c", "none"), ("d", "store"), ("e", "memory")):
        feed.send_keys(key)
        with start(feed.frame(), tmp_path / "store", sink=sink) as job:
            job.process_all_available()
            if sink == "memory":
                counted.append({row["key"] for row in job.collected().to_pylist()})
    assert counted == [{"b"}, {"b", "d", "e"}]


def test_timers_fire_on_a_stream_without_rows_and_after_a_restart(feed: Feed, tmp_path: Path) -> None:
    trigger = {"processingTime": "100 milliseconds"}
    feed.send_keys("a")
    with start(feed.frame(), tmp_path / "store", operator=Reminder(), trigger=trigger) as job:
        job.process_all_available()
        assert until(lambda: job.collected().num_rows == 1, 10)
        feed.send_keys("b")
        job.process_all_available()
        job.stop()
    with start(feed.frame(), tmp_path / "store", operator=Reminder(), trigger=trigger) as job:
        assert until(lambda: sorted(row["key"] for row in job.collected().to_pylist()) == ["a", "b"], 10)
        feed.send_keys("c")
        assert until(lambda: job.collected().num_rows == 3, 10)
        progress = job.stream.lastProgress
        assert progress is not None
        assert job.status().last_batch > progress.batchId
