"""The end of jobs on a real Spark: with their source, by a stop while an operator hangs, and without their JVM."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from elastic.operators import Context, Operator, State
from tests.spark.jobs import Feed, start, until

pytestmark = pytest.mark.spark


class Hangs(Operator):
    """Hangs at the key "hang" until its process is killed."""

    def initial_state(self) -> int:
        return 0

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        if "hang" in rows[self.key[0]].to_pylist():
            time.sleep(600)
        state.value += rows.num_rows


def test_a_job_with_the_trigger_available_now_processes_everything_and_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path / "feed")
    for key in "abca":
        feed.send_keys(key)
    for run in (1, 2):  # the second one resumes and finds one more batch
        job = start(feed.frame(), tmp_path / "store", trigger={"availableNow": True})
        assert job.await_termination(60)
        status = job.status()
        assert status.state == "stopped"
        assert status.last_batch == status.published_batch == status.saved_batch
        assert job.stop().is_clean
        counts = {row["key"]: row["count"] for row in job.state_table().collect()}
        assert counts == {"a": 1 + run, "b": 1, "c": 1}
        feed.send_keys("a")


@pytest.mark.parametrize("drain", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_stop_returns_in_time_while_a_batch_waits_for_a_hung_operator(
    spark: SparkSession, tmp_path: Path, drain: bool
) -> None:
    feed = Feed(spark, tmp_path / "feed")
    trigger = {"processingTime": "50 milliseconds"}
    how = {"operator": Hangs(), "name": f"hangs-{drain}", "max_pending_batches": 1, "sink": "none", "trigger": trigger}
    job = start(feed.frame(), tmp_path / "store", **how)
    feed.send_keys("hang")
    until(lambda: job.status().last_batch == 0)
    feed.send_keys("a")  # waits for room
    until(lambda: job.stream.status["isTriggerActive"])
    began = time.monotonic()
    report = job.stop(drain=drain, timeout_seconds=12.0)
    assert time.monotonic() - began < 13.0
    assert (report.last_batch, report.published_batch) == (0, -1)
    assert not report.is_clean
    assert job.await_termination(0)


_WITHOUT_JVM = """
import os, pathlib, signal, sys, time
import elastic
from elastic.errors import SparkLost
from tests.spark.jobs import numbers, start

spark = elastic.local_session(2)
job = start(numbers(spark), pathlib.Path(sys.argv[1]), nodes=2, sink="none")
while job.status().last_batch < 2:
    time.sleep(0.1)
os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
began = time.monotonic()
try:
    job.await_termination(60)
except SparkLost as lost:
    print("lost after", round(time.monotonic() - began, 1), "s:", lost)
job.stop()
print("stopped after", round(time.monotonic() - began, 1), "s:", job.status().state)
os._exit(0)
"""


def test_a_job_whose_jvm_is_killed_ends_with_a_typed_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WITHOUT_JVM, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)  # noqa: S603
    assert "lost after" in done.stdout, done.stdout + done.stderr
    assert "stopped after" in done.stdout
    assert "failed" in done.stdout


@pytest.mark.long  # the test above shows the same stop without the command line
def test_a_run_whose_operator_hangs_ends_in_time_on_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTIC_SECRET", "a secret of this test")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("hang\n")
    command = [
        *(sys.executable, "-m", "elastic", "run", f"{__name__}:Hangs", "--name", "hangs"),
        *("--store", (tmp_path / "store").as_uri(), "--path", str(tmp_path / "texts"), "--key", "value"),
        *("--nodes", "2", "--set", "stop_seconds=10", "--set", "max_pending_batches=1"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        assert "is running" in process.stdout.readline()
        until(lambda: list((tmp_path / "store").rglob("log/*/*.log")))
        (tmp_path / "texts" / "two.txt").write_text("hello\n")
        time.sleep(2.0)  # its batch waits for room
        os.kill(process.pid, signal.SIGTERM)
        began = time.monotonic()
        output, errors = process.communicate(timeout=60)
        assert time.monotonic() - began < 20.0  # the stop's 10 s, and the end of Python and the JVM
    assert process.returncode == 0, errors
    assert "was stopped" in output
    assert "Batch 0 is committed" in errors
