"""Scaling a running job on a real Spark: nodes come and go, and every row counts once."""

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

import storage
from elastic import errors
from elastic.control import Journal
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark

ROWS, KEYS = 5_000, 400


def test_a_job_scales_out_and_in_while_rows_arrive_and_counts_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2)
    rows = source.load().selectExpr(f"pmod(value * 7919, {KEYS}) AS key")
    with start(rows, tmp_path / "store", tasks=16, snapshot_seconds=1.0) as job:
        dry = job.plan(4)
        assert set(dry.target.nodes) == {"node-1", "node-2", "node-3", "node-4"}
        for how in ({"nodes": 4}, {"remove": ["node-1"]}, {"add": 1, "mode": "live"}, {"nodes": 2, "mode": "suspend"}):
            before = job.status().applied_batch
            migration = job.scale(**how, relax=True)
            assert migration.wait(120)
            assert migration.progress().tasks_done == len(migration.plan.moves)
            serving = {node.name for node in job.status().nodes if node.serving}
            assert serving == set(migration.plan.target.nodes)
            while job.status().applied_batch < before + 2:
                job.await_termination(0.1)
        journal = job.journal()
    status = job.status()
    assert status.losses == 0
    total = ROWS * (status.last_batch + 1)
    wanted = np.bincount((np.arange(total) * 7919) % KEYS, minlength=KEYS)
    assert {row["key"]: row["count"] for row in job.state_table().collect()} == dict(enumerate(wanted.tolist()))
    outcomes = [(record["mode"], record["outcome"]) for record in journal if record["kind"] == "ended"]
    assert outcomes == [(mode, "done") for mode in ("progressive", "progressive", "live", "suspend")]


def test_a_job_that_is_stopped_settles_the_migration_under_way(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    with start(feed.frame(), tmp_path / "store", tasks=16) as job:
        feed.send_keys("a", "b", "c")
        job.process_all_available()
        migration = job.scale(4, relax=True, tasks_per_node=1)
    assert migration.phase in ("cancelled", "done")
    journal = Journal(storage.open((tmp_path / "store").as_uri()), "counts")
    assert [record.get("outcome") for record in journal.read()] == [None, migration.phase]


def test_a_request_that_cannot_be_right_starts_nothing(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    with start(feed.frame(), tmp_path / "store") as job:
        for how in ({"nodes": 0}, {"nodes": 9}, {"nodes": 2, "add": 1}, {"mode": "fast"}, {"remove": ["node-9"]}):
            with pytest.raises(errors.InvalidRequest):
                job.scale(**how)
        with pytest.raises(errors.InvalidRequest):
            job.scale(3, tasks_per_node=-1)
        assert job.migration is None
        assert job.journal() == []
    with pytest.raises(errors.JobStopped):
        job.scale(3)
