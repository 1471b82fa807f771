"""Spares on a real Spark: a killed node's name and a scale-out's first nodes go to processes that wait for them."""

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from elastic.errors import TooFewSlots
from tests.spark.jobs import CountSlowToMove, assert_exact, numbers, start, until

pytestmark = pytest.mark.spark

HOW = {"tasks": 16, "trigger": {"processingTime": "200 milliseconds"}, "sink": "none"}
SLOTS = 8  # of the shared session


def test_a_killed_node_and_a_scale_out_take_spares_and_every_row_counts_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    with start(numbers(spark), tmp_path, operator=CountSlowToMove(0.0), **HOW, spares=1) as job:
        with pytest.raises(TooFewSlots, match="and 1 spare"):
            job.scale(SLOTS - 1)
        until(lambda: job.status().spares == 1)
        victim = job.status().nodes[0]
        os.kill(victim.pid, signal.SIGKILL)
        until(lambda: job.status().recoveries)
        assert job.status().recoveries[0]["reason"].startswith("its process died")
        until(lambda: job.status().spares == 1)  # another one, in the slot of the dead process
        named = job._driver.links._spares._named
        assert {one.node for one in named.values()} == {victim.name}
        assert job.scale(3).wait(120)
        assert {one.node for one in named.values()} == {victim.name, "node-3"}
        applied = job.status().published_batch
        until(lambda: job.status().published_batch > applied + 1)
    assert_exact(job, losses=1)
    assert not job._driver.links._spares._named  # all processes have ended
