"""Incarnations that Spark is asked for, without a Spark."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from elastic.runtime import launcher
from elastic.runtime.launcher import SparkLauncher, rest_seconds


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

    def _note(self, _node: str, _incarnation: str, why: str) -> None:
        self.reasons.append(why)
        self.ended.release()

    def _run(self, spec: Any) -> tuple[bool, str]:  # noqa: ARG002 - the launcher's own
        self.started.append(time.monotonic())
        return self.dies, "it is over"


def test_only_nodes_that_die_soon_again_and_again_have_to_wait() -> None:
    assert [rest_seconds(lives) for lives in range(5)] == [0, 0, 0.25, 0.5, 1]
    assert rest_seconds(50) == 10


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
    assert bench.cancelled[-7:] == [f"spark-elastic node-1.{number}" for number in range(1, 8)]
