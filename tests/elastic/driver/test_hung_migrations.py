"""A migration that waits for a node whose operator hangs, on real processes."""

from pathlib import Path

import pytest

from elastic.job import status
from tests.elastic.driver.fatal_operators import HANG, FatalSums
from tests.elastic.driver.local_job import run_processes, until


def test_a_migration_that_waits_for_a_hung_operator_says_so_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(status, "_LEAST_OVERDUE_SECONDS", 1.0)
    with run_processes(FatalSums(), tmp_path, tasks=4, nodes=1, node_timeout_seconds=5.0) as job:
        job.driver.wait_until_published(job.commit([("a", 1), ("stuck", 1)]), 30)
        batch = job.commit([("stuck", HANG)])
        until(lambda: any("has been taking" in problem for problem in job.status().problems), "the overdue step")
        migration = job.job.scale(2, relax=True)
        until(lambda: migration.progress().overdue, "the migration to wait for the hung node")
        assert any("node-1 to release" in one and f"batch {batch}" in one for one in migration.progress().waiting_for)
        migration.cancel()
        assert migration.wait(30)
        assert migration.phase == "cancelled"
        assert any(line.startswith("waits for node-1 to release") for line in migration.story())
        assert job.status().losses == 1
        assert "a cancelled migration waited for node-1 to release" in caplog.text


def test_a_node_that_was_replaced_ends_although_its_operator_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_processes(FatalSums(), tmp_path, tasks=1, nodes=1, node_timeout_seconds=2.0) as job:
        batch = job.commit([("stuck", HANG)])
        until(lambda: any(node.step is not None for node in job.status().nodes), "the step to begin")
        [hung] = job.launcher.incarnations
        kill = job.launcher.cancel
        monkeypatch.setattr(job.launcher, "cancel", lambda one: kill(one) if one != hung else None)
        job.driver.replace_node("node-1", "it hangs")
        assert job.launcher.wait([hung], 30) == []
        assert job.driver.view.newest_batch == batch
