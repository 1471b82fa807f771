"""Autoscaling a running job on a real Spark: load adds nodes, idleness removes them, and every row is counted once."""

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import elastic
from elastic import errors
from elastic.operators import CountByKey
from elastic.operators.context import Context
from elastic.operators.operator import State, Yields
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark

KEYS = [f"key-{number}" for number in range(64)]
FAST = {"window_seconds": 3.0, "cool_down_seconds": 3.0}


class SlowCount(CountByKey):
    """Counts, and takes its time: work that needs no processor, so that a small machine can be overloaded with it."""

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        time.sleep(0.001 * pc.sum(rows["count"]).as_py())
        return super().handle_batch(rows, state, context)


def nodes_of(job: "elastic.SparkJob") -> int:
    return sum(node.serving for node in job.status().nodes)


def until(job: "elastic.SparkJob", true: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait until `true` holds, and raise the error that ends the job meanwhile."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, (job.load(3.0), job.autoscaler and job.autoscaler.last_decision)
        job.await_termination(0.1)


def test_high_load_adds_nodes_and_low_load_removes_them_with_exact_counts(spark: SparkSession, tmp_path: Path) -> None:
    feed, sent = Feed(spark, tmp_path / "input"), 0
    frame = feed.frame()
    autoscale = {"floor": 2, "ceiling": 3, "scaling": {"mode": "live"}, **FAST}
    with start(frame, tmp_path / "store", operator=SlowCount(), autoscale=autoscale) as job:

        def rush() -> bool:
            nonlocal sent
            if job.status().rows == sent * len(KEYS):  # what was sent is taken in: the rush must have an end
                feed.send_keys(*KEYS * 30)
                sent += 30
            return nodes_of(job) == 3

        until(job, rush)
        assert job.load(3.0).mean_utilisation > 0.3
        job.process_all_available()
        until(job, lambda: nodes_of(job) == 2)
        assert job.autoscaler is not None
        with pytest.raises(errors.AutoscalerRunning):
            job.autoscale(ceiling=4)
        journal = job.journal()
    assert job.autoscaler.is_stopped
    assert {row["key"]: row["count"] for row in job.state_table().collect()} == dict.fromkeys(KEYS, sent)
    decided = [record for record in journal if record["kind"] == "decided"]
    assert [(record["nodes"], record["target"]) for record in decided] == [(2, 3), (3, 2)]
    assert all(record["reason"] and record["utilisation"] for record in decided)
    assert {record["outcome"] for record in journal if record["kind"] == "ended"} == {"done"}


def test_an_invalid_autoscaler_is_refused_and_starts_nothing(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    with pytest.raises(errors.InvalidAutoscaling, match="ceiling"):
        start(feed.frame(), tmp_path / "store", autoscale={"ceiling": 9})
    with start(feed.frame(), tmp_path / "store", tasks=64) as job:
        with pytest.raises(errors.UnknownPolicy):
            job.autoscale("crystal-ball", ceiling=4)
        with pytest.raises(errors.TooFewSlots):
            job.autoscale(ceiling=60)
        none = job.autoscaler
        assert none is None
        autoscaler = job.autoscale(ceiling=3, recommend_only=True)
        autoscaler.stop()
        assert job.autoscale(ceiling=4) is job.autoscaler
        assert job.journal() == []
    with pytest.raises(errors.JobStopped):
        job.autoscale(ceiling=4)
