"""Standbys on Spark: a node is killed with kill -9, its standby takes over, and the warm way back moves its tasks."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from elastic.operators import CountByKey, Stage
from elastic.routing import hash_key
from tests.spark.jobs import Feed, start, until

pytestmark = pytest.mark.spark

KEYS = [f"key-{number}" for number in range(40)]


def test_a_killed_node_is_replaced_by_its_standbys_and_gets_its_tasks_back_warm(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path / "feed")
    sent: Counter[str] = Counter()
    with start(feed.frame(), tmp_path / "store", nodes=3, standbys=1) as job:
        for _ in range(3):
            feed.send_keys(*KEYS)
            sent.update(KEYS)
            job.process_all_available()
        until(lambda: sum(len(node.standbys) for node in job.status().nodes) == 8)
        until(lambda: sum(map(len, job._driver.view.standbys.values())) == 8)
        lost = next(node for node in job.status().nodes if node.name == "node-2")
        os.kill(lost.pid, signal.SIGKILL)
        feed.send_keys(*KEYS)
        sent.update(KEYS)
        job.process_all_available()
        assert {key: job.state(key) for key in KEYS} == dict(sent)
        [recovery] = job.status().recoveries
        assert (recovery["node"], recovery["units"] > 0) == ("node-2", True)
        assert "node-2" not in job.assignment().owners
        until(lambda: len(job.status().nodes) == 3 and all(node.serving for node in job.status().nodes))
        until(lambda: sum(map(len, job._driver.view.standbys.values())) == 8)
        migration = job.rebalance(mode="warm")
        migration.wait(60.0)
        assert "node-2" in job.assignment().owners
        assert migration.progress().stored_bytes == 0
        feed.send_keys(*KEYS)
        sent.update(KEYS)
        job.process_all_available()
        assert {key: job.state(key) for key in KEYS} == dict(sent)


def test_protected_keys_of_a_killed_node_are_served_by_their_standbys(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "feed")
    sent: Counter[str] = Counter()
    stage = Stage(CountByKey(), grouping="table", protected_keys=["key-3", "key-7"])
    with start(feed.frame(), tmp_path / "store", nodes=3, operator=stage) as job:
        for lost in (None, "key-3", "key-7"):
            if lost is not None:
                until(lambda: sum(map(len, job._driver.view.standbys.values())) == 8)  # the guests of 8 tasks
                routing = job.routing()
                unit = routing.groupings.unit_of(hash_key(lost), 0)
                assert unit.guests
                node = next(one for one in job.status().nodes if one.name == routing.owners(unit)[0])
                os.kill(node.pid, signal.SIGKILL)
            feed.send_keys(*KEYS)
            sent.update(KEYS)
            job.process_all_available()
        assert {key: job.state(key) for key in KEYS} == dict(sent)
        assert [entry.entries for entry in job.key_tables()] == [2]
        assert job.status().losses == 2
