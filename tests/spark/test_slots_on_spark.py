"""Task slots on a real Spark with eight of them: no request takes the last one, and none harms running nodes."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import elastic
from elastic.errors import NodeStartTimeout, TooFewSlots
from elastic.spark.slots import count_slots
from tests.spark.jobs import CountSlowToMove, assert_exact, numbers, start, until

pytestmark = pytest.mark.spark

HOW = {"tasks": 16, "trigger": {"processingTime": "200 milliseconds"}, "sink": "none"}
SLOTS = 8  # of the shared session


def lives(job: "elastic.SparkJob") -> dict[str, tuple[str, int]]:
    return {node.name: (node.incarnation, node.pid) for node in job._driver.view.nodes}


def progresses(job: "elastic.SparkJob") -> bool:
    applied = job.status().published_batch
    return bool(until(lambda: job.status().published_batch > applied + 1))


def test_no_request_takes_the_last_task_slot(spark: SparkSession, tmp_path: Path) -> None:
    assert count_slots(spark.sparkContext) == SLOTS
    with start(numbers(spark), tmp_path, operator=CountSlowToMove(0.0), **HOW) as job:
        before = lives(job)
        for ask in (job.plan, job.scale):
            with pytest.raises(TooFewSlots) as caught:
                ask(SLOTS)
            assert (caught.value.nodes, caught.value.slots, caught.value.needed) == (SLOTS, SLOTS, SLOTS + 1)
        assert lives(job) == before
        with pytest.raises(TooFewSlots):
            start(numbers(spark), tmp_path, name="second", nodes=SLOTS - 2)
        assert job.scale(SLOTS - 1).wait(120)  # the last slot is left to the senders
        assert progresses(job)
    assert_exact(job)


def test_cancelling_nodes_while_they_start_harms_no_running_node(spark: SparkSession, tmp_path: Path) -> None:
    """A wrong number of slots lets nodes start beyond them; they are cancelled at every stage of starting."""
    with start(numbers(spark), tmp_path, operator=CountSlowToMove(0.0), **HOW, task_slots=100) as job:
        before = lives(job)
        launcher: Any = job._driver.links._spares._launcher
        for turn in range(12):
            with pytest.raises(NodeStartTimeout):
                job._driver.add_nodes([f"extra-{number}" for number in range(SLOTS + 1)], 0.03 * turn)
            until(lambda: not launcher._launches.keys() - {life for life, _ in before.values()}, 20)
            assert lives(job) == before
        assert progresses(job)
        assert lives(job) == before
    assert_exact(job)  # no node was lost, no row was counted twice
