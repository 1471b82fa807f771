"""Rows that kill Spark's Python workers, and nodes that cannot start there."""

import importlib
import json
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from elastic.errors import NodeStartFailed, PoisonedStep
from tests.elastic.runtime.fatal_operators import CRASH, ClosedDoor, FatalSums
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "input")


def test_a_row_that_kills_the_process_ends_the_job_and_is_set_aside_by_the_next_life(
    feed: Feed, tmp_path: Path
) -> None:
    job = start(feed.frame(), tmp_path / "store", operator=FatalSums())
    feed.send({"key": "a", "value": 1}, {"key": "poison", "value": CRASH})
    with pytest.raises(PoisonedStep, match="its process died"):
        job.await_termination(120)
    assert job.status().state == "failed"
    job.stop()
    with start(feed.frame(), tmp_path / "store", operator=FatalSums(), on_error="skip") as job:
        feed.send({"key": "a", "value": 2})
        job.process_all_available()
        assert job.state("a") == 3
        [aside] = job.quarantined().to_pylist()
        assert json.loads(aside["row"])["key"] == "poison"
        assert "killed by signal SIGSEGV" in aside["error"]


def test_a_node_that_cannot_start_says_why_before_the_time_to_start_is_over(feed: Feed, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(NodeStartFailed, match="OSError: there is no licence at /etc/licence"):
        start(feed.frame(), tmp_path / "store", operator=ClosedDoor(tmp_path))
    assert time.monotonic() - began < 30


def test_a_module_that_only_the_driver_has_is_named(
    feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from elastic.operators import CountByKey\n\n\nclass Counts(CountByKey):\n    pass\n"
    (tmp_path / "only_on_the_driver.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    began = time.monotonic()
    try:
        module = importlib.import_module("only_on_the_driver")
        with pytest.raises(NodeStartFailed, match="No module named 'only_on_the_driver'") as raised:
            start(feed.frame(), tmp_path / "store", operator=module.Counts())
    finally:
        sys.modules.pop("only_on_the_driver", None)
    assert "Install the package on every executor" in str(raised.value)
    assert time.monotonic() - began < 30
