"""Jobs on a real Spark: rows in, exact results out, and on again after a stop."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from elastic.operators import (
    Context,
    CountByKey,
    KeyedOperator,
    Operator,
    Stage,
    State,
    Timer,
    ToNext,
    ToSelf,
    stateless,
)
from elastic.results import ParquetSink
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "input")


def counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """The last count that was given out for every key."""
    return {row["key"]: row["count"] for row in sorted(rows, key=lambda row: row["_batch"])}


def test_a_job_counts_answers_queries_and_resumes_after_a_stop(feed: Feed, tmp_path: Path) -> None:
    feed.send_keys("a", "b", "a")
    with start(feed.frame(), tmp_path / "store") as job:
        job.process_all_available()
        assert counts(job.collected().to_pylist()) == {"a": 2, "b": 1}
        assert job.state("a") == 2
        assert job.state("never seen") == 0
        status = job.status()
        assert (status.state, status.rows, status.losses, status.pending_batches) == ("running", 3, 0, 0)
        assert [node.serving for node in status.nodes] == [True, True]
    assert job.status().state == "stopped"
    feed.send_keys("a", "c")
    with start(feed.frame(), tmp_path / "store") as again:
        again.process_all_available()
        assert again.state("a") == 3
        assert again.state("b") == 1
        again.snapshot()
        table = {row["key"]: row["count"] for row in again.state_table().collect()}
    assert table == {"a": 3, "b": 1, "c": 1}


def test_results_are_emitted_once_as_a_stream_and_as_parquet(spark: SparkSession, feed: Feed, tmp_path: Path) -> None:
    sink = ParquetSink((tmp_path / "parquet").as_uri())
    with start(feed.frame(), tmp_path / "store", sink=sink) as job:
        for keys in ("ab", "bc", "cccc"):
            feed.send_keys(*keys)
            job.process_all_available()
        writer = job.results().writeStream.format("memory").queryName("streamed").outputMode("append")
        query = writer.option("checkpointLocation", str(tmp_path / "reader")).trigger(availableNow=True).start()
        query.awaitTermination(60)
        streamed = Counter((row["key"], row["count"], row["_batch"]) for row in spark.table("streamed").collect())
    written = pq.read_table(tmp_path / "parquet").to_pylist()
    expected = Counter([("a", 1, 0), ("b", 1, 0), ("b", 2, 1), ("c", 1, 1), ("c", 5, 2)])
    assert streamed == expected
    assert Counter((row["key"], row["count"], row["_batch"]) for row in written) == expected


class Halves(Operator):
    """Sends the next stage a number under its own key, and itself the half of it until that is 0."""

    output_schema = "number long"
    emits = frozenset({"self"})

    def handle_batch(self, rows: Any, _state: State, _context: Context) -> list[Any]:
        again = [
            {"key": str(row["value"] // 2), "value": row["value"] // 2} for row in rows.to_pylist() if row["value"]
        ]
        return [ToNext([{"number": row["value"]} for row in rows.to_pylist()]), ToSelf(again)]


def test_records_that_operators_send_to_their_own_and_the_next_stage_are_counted_once(
    feed: Feed, tmp_path: Path
) -> None:
    stages = [Stage(Halves(), "key", "halves"), Stage(CountByKey(), "number", "counted")]
    with start(feed.frame(), tmp_path / "store", operator=stages) as job:
        feed.send({"key": "x", "value": 8}, {"key": "y", "value": 5})
        job.process_all_available()
        feed.send({"key": "x", "value": 2})
        job.process_all_available()
        found = {number: job.state(number, stage="counted") for number in range(10)}
    wanted = Counter(number for value in (8, 5, 2) for number in (value >> step for step in range(10)))
    zeros = 3  # every value ends in 0 once
    assert found == {**{number: wanted[number] for number in range(1, 10)}, 0: zeros}


class Quiet(KeyedOperator):
    """Tells of a key when nothing came for it for ten seconds of event time."""

    output_schema = "key string, rows long"

    def handle_key(self, _key: Any, rows: Any, state: Any, context: Context) -> None:
        state.update((state.get() or 0) + len(rows))
        latest = max(row["ts"] for row in rows)
        context.set_timer(int(latest.timestamp() * 1000) + 10_000, kind="event")

    def handle_expired(self, key: Any, _timer: Timer, state: Any, _context: Context) -> list[dict[str, Any]]:
        found = state.get()
        state.clear()
        return [{"key": key, "rows": found}]


def test_timers_fire_by_event_time_when_the_watermark_passes(feed: Feed, tmp_path: Path) -> None:
    def at(key: str, second: int) -> dict[str, Any]:
        return {"key": key, "value": 0, "ts": f"2026-01-01T00:00:{second:02d}Z"}

    watermark = {"event_time": "ts", "watermark_delay": "5 seconds"}
    with start(feed.frame(), tmp_path / "store", operator=Quiet(), **watermark) as job:
        feed.send(at("a", 0), at("a", 1), at("b", 12))
        job.process_all_available()
        assert job.collected().num_rows == 0  # the watermark is at 7 s, and the timer of a at 11 s
        feed.send(at("b", 17))
        job.process_all_available()
        assert [(row["key"], row["rows"], row["_batch"]) for row in job.collected().to_pylist()] == [("a", 2, 1)]
        assert job.state("a") is None
        assert job.state("b") == 2


def test_the_heaviest_keys_of_the_last_interval_are_known_by_name(feed: Feed, tmp_path: Path) -> None:
    # An operator that does not combine: rows that are combined on their way are one row at the node.
    operator = stateless(lambda rows: rows.select(["key"]), "key string")
    asked = {"operator": operator, "key_statistics": "all", "key_interval_seconds": 2.0, "heartbeat_seconds": 0.1}
    with start(feed.frame(), tmp_path / "store", **asked) as job:
        feed.send_keys(*("heavy" for _ in range(50)), *(f"light-{number}" for number in range(30)))
        job.process_all_available()
        for _ in range(100):
            heavy = [key for key in job.keys(top=100) if key.name == "heavy"]
            if heavy:
                break
            job.await_termination(0.1)
    assert [key.rows for key in heavy] == [50]
