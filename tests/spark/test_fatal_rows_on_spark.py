"""Rows that kill Spark's Python workers, and nodes that cannot start there."""

import importlib
import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from elastic.errors import NodeStartFailed, PoisonedStep, SinkFailed
from elastic.results import MemorySink
from tests.elastic.driver.fatal_operators import CRASH, ClosedDoor, FatalSums
from tests.spark.jobs import Feed, start

pytestmark = pytest.mark.spark


class FullSink(MemorySink):
    """Takes one batch."""

    def deliver(self, batch: int, rows: pa.Table) -> None:
        if batch > 0:
            raise OSError("no space left on device")
        super().deliver(batch, rows)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path / "input")


def test_a_row_that_kills_the_process_ends_the_job_and_is_quarantined_after_a_restart(
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


def test_a_node_that_cannot_start_reports_why_before_the_start_times_out(feed: Feed, tmp_path: Path) -> None:
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


def test_a_failed_sink_is_reported_while_the_job_continues(feed: Feed, tmp_path: Path) -> None:
    with start(feed.frame(), tmp_path / "store", sink=FullSink()) as job:
        feed.send_keys("a")
        job.process_all_available()
        assert (job.status().sink_error, job.status().problems) == (None, ())
        feed.send_keys("a", "b")
        with pytest.raises(SinkFailed, match="OSError: no space left on device"):
            job.process_all_available()
        assert job.status().sink_error == "OSError: no space left on device"
        assert job.status().problems == ("results no longer reach the sink: OSError: no space left on device",)
        assert (job.status().state, job.state("a")) == ("running", 2)
