"""Steps that kill processes, on real processes: the job ends with the step's name, or sets the row aside."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from elastic.errors import NodeStartFailed, PoisonedStep
from storage.state import UnitId
from tests.elastic.driver.fatal_operators import CRASH, HANG, ClosedDoor, FatalSums
from tests.elastic.driver.local_job import run_processes, until


def test_a_row_that_kills_the_process_ends_the_job_with_batch_and_task(tmp_path: Path) -> None:
    with run_processes(FatalSums(), tmp_path) as job:
        good = job.commit([("a", 1), ("b", 2)])
        job.driver.wait_until_published(good, 30)
        batch = job.commit([("a", 3), ("poison", CRASH), ("c", 4)])
        with pytest.raises(PoisonedStep, match="its process died") as raised:
            job.driver.wait_until_published(batch, 60)
        assert (raised.value.batch, raised.value.round) == (batch, 0)
        assert raised.value.tasks == (job.task_of("poison"),)
        assert len(job.launcher.incarnations) == 2 + 3  # the first death is not known to be of a step


@pytest.mark.parametrize(("value", "limit_seconds"), [(CRASH, 0.0), (HANG, 3.0)], ids=["crash", "hang"])
def test_a_job_that_skips_rows_sets_those_aside_that_kill_the_process(
    tmp_path: Path, value: int, limit_seconds: float
) -> None:
    settings: dict[str, Any] = {"on_error": "skip", "step_timeout_seconds": limit_seconds, "snapshot_seconds": 3600.0}
    with run_processes(FatalSums(), tmp_path, tasks=1, nodes=1, **settings) as job:
        job.driver.wait_until_published(job.commit([("a", 1), ("poison", 7)]), 60)
        fatal = job.commit([("a", 2), ("b", 3), ("poison", value), ("c", 4), ("poison", 1)])
        job.driver.wait_until_published(fatal, 120)
        sums = {row["key"]: row["sum"] for row in job.output(fatal)}
        assert sums == {"a": 3, "b": 3, "c": 4}
        aside = job.results.read_quarantined(fatal).to_pylist()
        assert [json.loads(row["row"]) for row in aside] == [
            {"key": "poison", "value": value},
            {"key": "poison", "value": 1},
        ]
        assert "ProcessDied: the process" in aside[0]["error"]
        # Another node that repeats the batch does as the first one did, and at once.
        [node] = job.status().nodes
        losses = job.status().losses
        os.kill(node.pid, signal.SIGKILL)
        until(lambda: job.status().losses > losses, "the loss")
        batch = job.commit([("a", 1), ("poison", 1)])
        job.driver.wait_until_published(batch, 60)
        assert {row["key"]: row["sum"] for row in job.output(batch)} == {"a": 4, "poison": 8}
        assert job.status().losses == losses + 1


def test_a_node_that_is_killed_again_and_again_does_not_end_the_job(tmp_path: Path) -> None:
    with run_processes(FatalSums(), tmp_path, nodes=1, snapshot_seconds=3600.0) as job:
        for round_ in range(8):
            job.driver.wait_until_published(job.commit([("a", 1), ("b", round_)]), 60)
            [node] = job.status().nodes
            os.kill(node.pid, signal.SIGKILL)
            until(lambda before=round_: job.status().losses > before, "the loss")  # type: ignore[misc]
        batch = job.commit([("a", 1)])
        job.driver.wait_until_published(batch, 60)
        assert job.output(batch) == [{"key": "a", "sum": 9}]
        assert job.status().problems == ()


def test_a_step_that_never_ends_is_seen_in_the_status_of_its_node(tmp_path: Path) -> None:
    with run_processes(FatalSums(), tmp_path) as job:
        batch = job.commit([("stuck", HANG)])
        job.commit([("stuck", 1)])
        node = job.driver.view.routing.owners(UnitId(0, job.task_of("stuck")))[0]

        def stuck() -> bool:
            found = next(one for one in job.status().nodes if one.name == node)
            return found.step is not None and found.step.seconds > 1 and found.pending_steps == 2

        until(stuck, "a step of more than a second, and another one behind it")
        found = next(one for one in job.status().nodes if one.name == node)
        assert found.step is not None
        assert (found.step.batch, found.step.round, found.step.tasks) == (batch, 0, (job.task_of("stuck"),))
        assert not found.step.overdue
        os.kill(found.pid, signal.SIGKILL)  # else closing the job waits for it


def test_a_step_that_never_ends_ends_the_job_when_it_has_a_time_limit(tmp_path: Path) -> None:
    with run_processes(FatalSums(), tmp_path, step_timeout_seconds=3.0) as job:
        batch = job.commit([("a", 1), ("stuck", HANG)])
        began = time.monotonic()
        with pytest.raises(PoisonedStep, match="longer than step_timeout_seconds allows") as raised:
            job.driver.wait_until_published(batch, 60)
        assert raised.value.tasks == (job.task_of("stuck"),)
        assert time.monotonic() - began < 45


def test_a_node_whose_operator_cannot_be_opened_says_so_before_the_time_to_start_is_over(tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    tried.mkdir()
    with run_processes(ClosedDoor(tried), tmp_path / "store", start=False) as job:
        began = time.monotonic()
        with pytest.raises(NodeStartFailed, match="OSError: there is no licence at /etc/licence") as raised:
            job.job.start()
        assert time.monotonic() - began < 30
        assert raised.value.attempts == 2
        assert len(list(tried.iterdir())) >= 2
