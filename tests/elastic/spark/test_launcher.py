"""Incarnations that Spark is asked for, without a Spark."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from elastic.spark import launcher
from elastic.spark.failures import find_external_cause, find_own_cause
from elastic.spark.launcher import NodeExit, SparkLauncher, backoff_seconds


class Bench(SparkLauncher):
    """A launcher whose incarnations end as soon as they start."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(launcher, "InheritableThread", threading.Thread)
        monkeypatch.setattr(launcher, "replace", lambda _, **spec: spec)
        self.dies = True
        self.cancelled: list[str] = []
        super().__init__(self, None)  # type: ignore[arg-type]
        self.started: list[float] = []
        self.ended = threading.Semaphore(0)
        self.reasons: list[str] = []

    @property
    def _jsc(self) -> Any:
        """Of a Spark that only notes which groups of jobs are cancelled."""
        jobs = SimpleNamespace(cancelJobGroupAndFutureJobs=self.cancelled.append)
        return SimpleNamespace(sc=lambda: jobs)

    def launch(self, incarnation: str) -> None:
        self.start("node-1", incarnation, "", self._note)

    def _note(self, _node: str, _incarnation: str, why: str, _failed: bool) -> None:
        self.reasons.append(why)
        self.ended.release()

    def _run(self, spec: Any) -> NodeExit:  # noqa: ARG002 - the launcher's own
        self.started.append(time.monotonic())
        return NodeExit(self.dies, "it is over")


def test_only_nodes_that_die_soon_again_and_again_have_to_wait() -> None:
    assert [backoff_seconds(lives) for lives in range(5)] == [0, 0, 0.25, 0.5, 1]
    assert backoff_seconds(50) == 10


def test_a_node_that_dies_soon_again_and_again_is_started_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    for number in range(4):
        bench.launch(f"node-1.{number}")
        assert bench.ended.acquire(timeout=10)
    gaps = [after - before for before, after in zip(bench.started, bench.started[1:], strict=False)]
    assert gaps[1] >= 0.25
    assert gaps[2] >= 0.5
    assert bench.wait(["node-1.3"], 0) == []


def test_nodes_that_leave_when_they_are_told_to_never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    bench.dies = False
    for number in range(4):
        bench.launch(f"node-1.{number}")
        assert bench.ended.acquire(timeout=10)
    assert bench.started[3] - bench.started[0] < 0.25


def test_a_start_that_waits_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    for number in range(8):
        bench._short_lives["node-1"] = number and 50
        bench.launch(f"node-1.{number}")
        bench.cancel(f"node-1.{number}")
        assert bench.ended.acquire(timeout=5)
    assert bench.reasons[1:] == ["it was cancelled"] * 7
    assert [group.split()[-1] for group in bench.cancelled[-7:]] == [f"node-1.{number}" for number in range(1, 8)]


def test_a_cancelled_incarnation_cancels_none_of_that_name_in_another_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark cancels later jobs of a cancelled group too, and all jobs of an application share their groups."""
    groups = []
    for bench in (Bench(monkeypatch), Bench(monkeypatch)):
        bench._short_lives["node-1"] = 50
        bench.launch("node-1.1")
        bench.cancel("node-1.1")
        groups += bench.cancelled
    assert len(set(groups)) == 2


_MISSING_MODULE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (10.0.0.1 executor 1): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/spark/python/pyspark/worker.py", line 100, in main
    func, profiler, deserializer, serializer = read_command(pickleSer, infile)
  File "/spark/python/pyspark/serializers.py", line 460, in loads
    return cloudpickle.loads(obj, encoding=encoding)
ModuleNotFoundError: No module named 'patterns'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
"""
_NO_DAEMON = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.1 executor 1): org.apache.spark.SparkException: No port number in \
elastic.spark.daemon's stdout
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:289)
"""


def test_an_error_of_the_nodes_own_is_told_without_the_stacks_around_it() -> None:
    assert find_own_cause(RuntimeError(_MISSING_MODULE)) == "ModuleNotFoundError: No module named 'patterns'"
    assert find_own_cause(RuntimeError(_NO_DAEMON)).endswith("No port number in elastic.spark.daemon's stdout")
    assert find_external_cause(_MISSING_MODULE) is None
    assert find_external_cause("Python worker exited unexpectedly (crashed)") == "its process died"
