"""What a user sees who types the name of a handle into a REPL, and what is logged about it."""

import logging

import pytest

from elastic.control import Autoscaler, AutoscalerSettings, JobJournal, Monitor
from elastic.job.status import JobStatus, NodeStatus, UnitStatus
from tests.elastic.api.paper_job import PaperJob


def test_a_status_is_one_line_however_many_units_there_are() -> None:
    units = tuple(UnitStatus(0, task, 10, 0.5, 1_000) for task in range(64))
    node = NodeStatus("node-1", True, "127.0.0.1:9", 7, 0, 2, 0, units)
    status = JobStatus("words", "running", 3, 18, 17, 12, 1, 640, 0, (), (node,))
    assert repr(status) == (
        "JobStatus('words', running, nodes=1, epoch=3, batch=18, pending_batches=1, rows=640, losses=0)"
    )
    assert repr(node) == "NodeStatus('node-1', serving, units=64, rows=640, state_bytes=64000, pending_steps=2)"


def test_a_migration_is_one_line_and_is_logged_when_it_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    job = PaperJob()
    with caplog.at_level(logging.INFO, "elastic"):
        migration = job.scale(6, relax=True)
        assert migration.wait(10)
        assert repr(migration).startswith("TaskMigration(4 -> 6 nodes, ")
        for _ in range(100):
            if len(caplog.records) == 2:
                break
            migration.wait_for_resume(0.05)
    begins, ended = [record.getMessage() for record in caplog.records]
    assert begins.startswith("migration begins: TaskMigration(4 -> 6 nodes, planned, 0 of ")
    assert "ssm, progressive) reason=" in begins
    assert ended.startswith("migration ended: TaskMigration(4 -> 6 nodes, done, ")


def test_an_autoscaler_is_one_line() -> None:
    job = PaperJob()
    monitor = Monitor(16)
    autoscaler = Autoscaler(
        AutoscalerSettings.from_arguments(16, ceiling=8),
        job.cluster,
        monitor,
        job._scaler,
        JobJournal(job._store, "scaled"),
    )
    assert repr(autoscaler) == "Autoscaler(utilisation, 1 to 8 nodes, running, no decision yet)"
    autoscaler.poll()
    assert "target 4 nodes: " in repr(autoscaler)
    assert "\n" not in repr(autoscaler)
