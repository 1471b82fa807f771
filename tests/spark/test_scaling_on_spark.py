"""Scaling a running job on a real Spark: nodes join and leave, and every row is counted once."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import elastic
import mdp
import storage
from elastic import errors
from elastic.control import JobJournal
from elastic.operators import Context, Operator, State
from elastic.secret import application_secret
from mdp import InvalidTable, TransitionMatrix
from mdp.learning.journal import newest_workload
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark

ROWS, KEYS = 5_000, 400


def wait_for_batch(job: elastic.SparkJob, batch: int) -> None:
    while job.status().published_batch < batch:
        job.await_termination(0.1)


def test_a_job_scales_out_and_in_while_rows_arrive_and_counts_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2)
    rows = source.load().selectExpr(f"pmod(value * 7919, {KEYS}) AS key")
    with start(rows, tmp_path / "store", tasks=16, snapshot_seconds=1.0) as job:
        dry = job.plan(4)
        assert set(dry.target.nodes) == {"node-1", "node-2", "node-3", "node-4"}
        for how in ({"nodes": 4}, {"remove": ["node-1"]}, {"add": 1, "mode": "live"}, {"nodes": 2, "mode": "suspend"}):
            before = job.status().published_batch
            migration = job.scale(**how, relax=True)
            assert migration.wait(120)
            assert migration.progress().tasks_done == len(migration.plan.moves)
            serving = {node.name for node in job.status().nodes if node.serving}
            assert serving == set(migration.plan.target.nodes)
            wait_for_batch(job, before + 2)
        journal = job.journal()
    status = job.status()
    assert status.losses == 0
    total = ROWS * (status.last_batch + 1)
    wanted = np.bincount((np.arange(total) * 7919) % KEYS, minlength=KEYS)
    assert {row["key"]: row["count"] for row in job.state_table().collect()} == dict(enumerate(wanted.tolist()))
    outcomes = [(record["mode"], record["outcome"]) for record in journal if record["kind"] == "ended"]
    assert outcomes == [(mode, "done") for mode in ("progressive", "progressive", "live", "suspend")]


def test_a_job_plans_with_the_value_table_in_its_store(spark: SparkSession, tmp_path: Path) -> None:
    """From its journal: the workload of its latest migration, and what migrations of that job are like."""
    feed, store = Feed(spark, tmp_path / "input"), (tmp_path / "store").as_uri()
    matrix = TransitionMatrix([2, 3, 4], [[0, 0.8, 0.2], [0.5, 0, 0.5], [0.2, 0.8, 0]])
    with start(feed.frame(), tmp_path / "store", tasks=16) as job:
        feed.send_keys(*map(str, range(200)))
        job.process_all_available()
        with pytest.raises(InvalidTable, match="no value table 'foreseen'"):
            job.plan(3, strategy="mtm", value="foreseen")
        assert job.scale(3, relax=True, tau=1.0).wait(120)
        measured = newest_workload(store, "counts")
        assert measured.tasks == job.workload().tasks == 16
        table = mdp.project(measured, matrix, tau=1.0, relax=True)
        table.save(store, "foreseen", secret=application_secret(None, os.environ))
        dry = job.plan(4, strategy="mtm", value="foreseen", tau=1.0, relax=True)
        assert dry.strategy == "mtm"
        migration = job.scale(4, strategy="mtm", value="foreseen", tau=1.0, relax=True)
        assert migration.wait(120)
        assert len(job.assignment().nodes) == 4
        assert job.state("7") == 1


def test_a_stop_ends_the_migration_under_way(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    with start(feed.frame(), tmp_path / "store", tasks=16) as job:
        feed.send_keys("a", "b", "c")
        job.process_all_available()
        migration = job.scale(4, relax=True, tasks_per_node=1)
    assert migration.phase in ("cancelled", "done")
    journal = JobJournal(storage.open((tmp_path / "store").as_uri()), "counts")
    assert [record.get("outcome") for record in journal.read()] == [None, migration.phase]


class InOrder(Operator):
    """Emits every row that does not follow the previous one of its key."""

    output_schema = "key long, expected long, value long"

    def initial_state(self) -> dict[int, int]:
        return {}

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[dict[str, int]]:
        out_of_order = []
        for row in rows.to_pylist():
            expected = state.value.get(row["key"], 0)
            if row["value"] != expected:
                out_of_order.append({"key": row["key"], "expected": expected, "value": row["value"]})
            state.value[row["key"]] = row["value"] + 1
        return out_of_order


def run_requests(spark: SparkSession, store: Path, *requests: dict[str, Any]) -> tuple[list[dict[str, Any]], set[str]]:
    """Scale by the requests while rows arrive; return the records of their ends and the run ids of Spark's query."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1)
    rows = source.load().selectExpr(f"value % {KEYS} AS key", f"value div {KEYS} AS value")
    with start(rows, store, tasks=16, snapshot_seconds=1.0, operator=InOrder()) as job:
        queries = [job.stream]
        for request in requests:
            wait_for_batch(job, job.status().published_batch + 2)
            migration = job.scale(**request, relax=True)
            assert migration.wait(120)
            assert migration.progress().tasks_done == len(migration.plan.moves)
            assert {node.name for node in job.status().nodes if node.serving} == set(migration.plan.target.nodes)
            wait_for_batch(job, job.status().published_batch + 2)
            queries.append(job.stream)
        ended = [record for record in job.journal() if record["kind"] == "ended"]
    assert len({query.id for query in queries}) == 1
    assert job.collected().num_rows == 0
    assert job.status().losses == 0
    total = ROWS * (job.status().last_batch + 1)
    assert sum(row["value"] for row in job.state_table().collect()) == total
    assert {record["outcome"] for record in ended} == {"done"}
    return ended, {str(query.runId) for query in queries}


def test_rows_keep_their_order_and_are_counted_once_when_states_move_directly(
    spark: SparkSession, tmp_path: Path
) -> None:
    out, in_ = {"nodes": 4, "transfer": "direct"}, {"nodes": 2, "mode": "live", "transfer": "direct"}
    ended, runs = run_requests(spark, tmp_path / "store", out, in_)
    assert all(0 < record["direct_bytes"] <= record["stored_bytes"] for record in ended)
    assert len(runs) == 1


def test_rows_keep_their_order_and_are_counted_once_across_restarts(spark: SparkSession, tmp_path: Path) -> None:
    ended, runs = run_requests(
        spark, tmp_path / "store", {"nodes": 3, "mode": "restart"}, {"remove": ["node-1"], "mode": "restart"}
    )
    assert [record["nodes_after"] for record in ended] == [3, 2]
    assert len(runs) == 3


def test_an_invalid_request_starts_nothing(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "input")
    with start(feed.frame(), tmp_path / "store") as job:
        for how in ({"nodes": 0}, {"nodes": 9}, {"nodes": 2, "add": 1}, {"mode": "fast"}, {"remove": ["node-9"]}):
            with pytest.raises(errors.InvalidRequest):
                job.scale(**how)
        for how in ({"tasks_per_node": -1}, {"transfer": "by post"}):
            with pytest.raises(errors.InvalidRequest):
                job.scale(3, **how)
        assert job.migration is None
        assert job.journal() == []
    with pytest.raises(errors.JobStopped):
        job.scale(3)
