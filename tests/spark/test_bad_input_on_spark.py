"""What cannot work is refused with a reason, before anything starts or without losing anything."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import elastic
from elastic import errors
from elastic.operators import Context, CountByKey, Operator, State
from elastic.results.errors import StateSchemaMismatch
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "input")


class Locked(CountByKey):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class NewerCount(CountByKey):
    version = "2"


class Shapeless(Operator):
    """Has a text as the state of one key, and a list as that of others."""

    def initial_state(self) -> dict[str, Any]:
        return {}

    def handle_batch(self, rows: Any, state: State, _context: Context) -> None:
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
            state.value[key] = "x" * 500 if value == 0 else [value]


class Picky(Operator):
    """Sums values per task, and cannot bear 13."""

    output_schema = "total long"

    def initial_state(self) -> int:
        return 0

    def handle_batch(self, rows: Any, state: State, _context: Context) -> list[dict[str, int]]:
        for value in rows["value"].to_pylist():
            if value == 13:
                raise ValueError("unlucky")
            state.value += value
        return [{"total": state.value}]


def refused(error: type[errors.ElasticError], feed: Feed, store: Path, **changes: Any) -> errors.ElasticError:
    """The error that starting such a job raises; nothing was written."""
    with pytest.raises(error) as caught:
        start(feed.frame(), store, **changes)
    assert not list(store.rglob("*.manifest"))
    return caught.value


def test_a_job_that_cannot_be_right_is_refused_before_it_starts(
    spark: SparkSession, feed: Feed, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    assert "key" in str(refused(errors.UnknownColumn, feed, store, key="kye"))
    refused(errors.UnserializableOperator, feed, store, operator=Locked())
    refused(errors.UnknownSetting, feed, store, snapshot_second=1)
    refused(errors.InvalidSetting, feed, store, nodes=0)
    refused(errors.InvalidSetting, feed, store, nodes=9)
    refused(errors.InvalidSetting, feed, store, name="../escape")
    refused(errors.InvalidSetting, feed, store, event_time="ts", watermark_delay="soon")
    refused(errors.InvalidSetting, feed, store, watermark_delay="10 seconds")
    assert "'time'" in str(refused(errors.UnknownColumn, feed, store, event_time="time"))
    assert "bigint" in str(refused(errors.InvalidEventTime, feed, store, event_time="value"))
    refused(errors.NotAnOperator, feed, store, operator=CountByKey)
    for url in ("words", "hdfs://name/words", "memory:"):
        with pytest.raises(errors.InvalidStore):
            elastic.run(feed.frame(), key="key", operator=CountByKey(), name="counts", store=url)
    refused(errors.InvalidSetting, feed, store, sink="somewhere")
    refused(errors.TooFewSlots, feed, store, nodes=12, tasks=64)
    batch = spark.createDataFrame([("a", 1)], "key string, value long")
    with pytest.raises(errors.InvalidJob, match="not a stream"):
        start(batch, store)
    arrays = feed.frame("key array<string>, value long")
    with pytest.raises(errors.UnsupportedKeyType):
        start(arrays, store)


def test_speculation_is_refused(
    spark: SparkSession, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = spark.sparkContext.getConf().set("spark.speculation", "true")
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    refused(errors.SpeculationEnabled, feed, tmp_path / "store")


def test_a_name_that_runs_is_taken_until_it_stops(feed: Feed, tmp_path: Path) -> None:
    with start(feed.frame(), tmp_path / "store"), pytest.raises(errors.JobNameInUse):
        start(feed.frame(), tmp_path / "store")
    with start(feed.frame(), tmp_path / "store"):
        pass


def test_an_incompatible_restart_is_refused_and_changes_nothing(feed: Feed, tmp_path: Path) -> None:
    feed.send_keys("a")
    with start(feed.frame(), tmp_path / "store") as job:
        job.process_all_available()
    for changes in ({"tasks": 16}, {"operator": NewerCount()}, {"key": "value"}):
        with pytest.raises(errors.IncompatibleRestart):
            start(feed.frame(), tmp_path / "store", **changes)
    with start(feed.frame(), tmp_path / "store") as job:
        assert job.state("a") == 1


def test_a_job_that_was_scaled_out_is_refused_at_once_where_its_nodes_have_no_room(feed: Feed, tmp_path: Path) -> None:
    with start(feed.frame(), tmp_path / "store") as job:
        job.scale(4).wait()
    with pytest.raises(errors.TooFewSlots) as caught:
        start(feed.frame(), tmp_path / "store", nodes=2, task_slots=4)
    assert (caught.value.nodes, caught.value.slots) == (4, 4)


def test_a_lost_checkpoint_is_noticed_before_rows_are_skipped_or_repeated(feed: Feed, tmp_path: Path) -> None:
    feed.send_keys("a", "b")
    with start(feed.frame(), tmp_path / "store") as job:
        job.process_all_available()
    job = start(feed.frame(), tmp_path / "store", checkpoint=str(tmp_path / "another"))
    with pytest.raises(errors.CheckpointMismatch):
        job.await_termination(60)
    assert job.status().state == "failed"


def test_an_old_copy_of_the_checkpoint_is_noticed_before_rows_are_skipped(feed: Feed, tmp_path: Path) -> None:
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    with start(feed.frame(), tmp_path / "store", checkpoint=checkpoint.as_uri()) as job:
        for key in "abc":
            feed.send_keys(key)
            job.process_all_available()
            if key == "a":
                shutil.copytree(checkpoint, copy)
    feed.send_keys("d")
    job = start(feed.frame(), tmp_path / "store", checkpoint=copy.as_uri())
    with pytest.raises(errors.CheckpointMismatch) as caught:
        job.await_termination(60)
    assert (caught.value.next_batch, caught.value.last_batch) == (1, 2)
    with start(feed.frame(), tmp_path / "store", checkpoint=checkpoint.as_uri()) as job:
        job.process_all_available()
        assert [job.state(key) for key in "abcd"] == [1, 1, 1, 1]


def test_a_null_key_stops_the_job_or_is_kept_or_dropped_as_told(feed: Feed, tmp_path: Path) -> None:
    feed.send_keys("a", None, "b", None)
    job = start(feed.frame(), tmp_path / "fail")
    with pytest.raises(errors.NullKey) as caught:
        job.await_termination(60)
    assert (caught.value.column, caught.value.rows, caught.value.batch) == ("key", 2, 0)
    for policy, expected in (("keep", 2), ("drop", 0)):
        with start(feed.frame(), tmp_path / policy, null_keys=policy) as kept:
            kept.process_all_available()
            assert (kept.state(None), kept.state("a")) == (expected, 1)


def test_a_row_that_is_too_large_stops_the_job_and_is_taken_with_a_higher_limit(feed: Feed, tmp_path: Path) -> None:
    feed.send_keys("a", "b" * 50_000)
    job = start(feed.frame(), tmp_path / "store", max_row_bytes=10_000)
    with pytest.raises(errors.RowTooLarge) as caught:
        job.await_termination(60)
    assert caught.value.size > 50_000
    with start(feed.frame(), tmp_path / "store") as job:
        job.process_all_available()
        assert job.state("b" * 50_000) == 1


def test_a_poison_record_stops_the_job_with_one_line_wherever_one_asks(feed: Feed, tmp_path: Path) -> None:
    poisoned = "if(value = 13, raise_error('poison'), key) AS key"
    feed.send({"key": "a", "value": 13})
    for place, ask in enumerate(("process_all_available", "await_termination")):
        job = start(feed.frame().selectExpr(poisoned, "value"), tmp_path / str(place))
        with pytest.raises(errors.StreamFailed, match="poison") as caught:
            getattr(job, ask)()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 500
        job.stop()
        with pytest.raises(errors.StreamFailed):
            job.await_termination(60)
        assert job.status().state == "failed"


def test_a_failed_batch_is_known_after_a_stop_that_comes_first(feed: Feed, tmp_path: Path) -> None:
    feed.send_keys("a", None)
    job = start(feed.frame(), tmp_path / "store")
    with pytest.raises(errors.NullKey):
        job.process_all_available()
    job.stop()
    assert job.status().state == "failed"
    with pytest.raises(errors.NullKey):
        job.await_termination(60)


def test_questions_about_state_that_have_no_answer_are_refused_by_type(feed: Feed, tmp_path: Path) -> None:
    feed.send(*({"key": str(number), "value": number} for number in range(16)))
    with start(feed.frame(), tmp_path / "store", operator=Shapeless(), sink="none") as job:
        job.process_all_available()
        for key in (5, b"5", ("5", "6"), None.__class__):
            with pytest.raises(errors.InvalidKey):
                job.state(key)
        assert job.state("4") == [4]
        job.snapshot()
        with pytest.raises(StateSchemaMismatch):
            job.state_table()


def test_an_operator_that_raises_stops_the_job_and_nothing_is_lost(feed: Feed, tmp_path: Path) -> None:
    feed.send({"key": "a", "value": 1}, {"key": "a", "value": 13}, {"key": "a", "value": 5})
    job = start(feed.frame(), tmp_path / "store", operator=Picky())
    with pytest.raises(errors.OperatorFailed, match="unlucky") as caught:
        job.await_termination(60)
    assert caught.value.batch == 0
    # The fixed operator gets the rows from the log: Spark does not send the batch again.
    with start(feed.frame(), tmp_path / "store", operator=Picky(), on_error="skip") as fixed:
        fixed.process_all_available()
        assert [row["total"] for row in fixed.collected().to_pylist()][-1] == 6
        quarantined = fixed.quarantined().to_pylist()
    assert [("unlucky" in row["error"], '"value": 13' in row["row"]) for row in quarantined] == [(True, True)]
