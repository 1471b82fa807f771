"""A migration that waits for a node whose operator hangs, on real processes."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import storage
from elastic.control import Journal, Monitor, Scaler, ScaleRequest
from elastic.runtime import status
from elastic.runtime.job_cluster import JobCluster
from tests.elastic.runtime.fatal_operators import HANG, FatalSums
from tests.elastic.runtime.local_nodes import running, until


def test_a_migration_that_waits_for_a_hung_operator_says_so_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(status, "_LEAST_OVERDUE_SECONDS", 1.0)
    with running(FatalSums(), tmp_path, tasks=4, nodes=1, node_timeout_seconds=5.0) as job:
        intake: Any = SimpleNamespace(settings=job.settings, gate=threading.Lock())
        stream: Any = None  # only a restart needs it
        cluster = JobCluster(job.controller, intake, stream, lambda _: None)
        scaler = Scaler(cluster, Monitor(4), Journal(storage.open("memory:"), "job"))
        job.controller.wait_until_applied(job.take([("a", 1), ("stuck", 1)]), 30)
        batch = job.take([("stuck", HANG)])
        until(lambda: any("has been taking" in problem for problem in job.status().problems), "the overdue step")
        migration = scaler.scale(ScaleRequest(nodes=2, relax=True))
        until(lambda: migration.progress().overdue, "the migration to wait for the hung node")
        assert any("node-1 to release" in one and f"batch {batch}" in one for one in migration.progress().waiting_for)
        migration.cancel()
        assert migration.wait(30)
        assert migration.phase == "cancelled"
        assert any(line.startswith("waits for node-1 to release") for line in migration.story())
        assert job.status().losses == 1
        assert "node-1 is lost: a cancelled migration waited for node-1 to release" in caplog.text


def test_a_node_that_was_replaced_ends_although_its_operator_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(FatalSums(), tmp_path, tasks=1, nodes=1, node_timeout_seconds=2.0) as job:
        batch = job.take([("stuck", HANG)])
        until(lambda: any(node.step is not None for node in job.status().nodes), "the step to begin")
        [hung] = job.launcher.started
        kill = job.launcher.cancel
        monkeypatch.setattr(job.launcher, "cancel", lambda one: kill(one) if one != hung else None)
        job.controller.replace_node("node-1", "it hangs")
        assert job.launcher.wait([hung], 30) == []
        assert job.controller.newest_batch == batch
