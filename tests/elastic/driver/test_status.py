"""The status of a job: what it calls a problem."""

from dataclasses import replace
from typing import Any

import pytest

from elastic import threads
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import Heartbeat
from elastic.core.nodes import FailedStarts, NodeView
from elastic.core.statistics import RunningStep, UnitStatistics
from elastic.core.steps import Position
from elastic.job.status import JobStatus, NodeStatus, StepStatus, UnitStatus
from tests.elastic.driver.parts import make_coordinator

STEP = Position(Batch(7), 0)
NOW = 1_000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "monotonic", lambda: NOW)


def node(seconds: float, usual_seconds: float, since_heartbeat: float = 0.0) -> NodeView:
    """A node that has been taking a step for so long, by a heartbeat of some seconds ago."""
    running = RunningStep(STEP, (UnitId(0, 3), UnitId(1, 3)), seconds, usual_seconds)
    heartbeat = Heartbeat(
        "node-1", "node-1.1", units=(UnitStatistics(UnitId(1, 3), 10, 0.5, 100),), pending_steps=2, running=running
    )
    return NodeView("node-1", "node-1.1", "127.0.0.1:1", 1, True, heartbeat, NOW - since_heartbeat)


@pytest.mark.parametrize(
    ("seconds", "usual_seconds", "overdue"), [(29, 0, False), (31, 0, True), (31, 3.2, False), (33, 3.2, True)]
)
@pytest.mark.parametrize("since_heartbeat", [0.0, 20.0])
def test_a_step_is_overdue_after_30_seconds_and_ten_times_what_is_usual(
    seconds: float, usual_seconds: float, since_heartbeat: float, overdue: bool
) -> None:
    found = StepStatus.of(node(seconds - since_heartbeat, usual_seconds, since_heartbeat), NOW)
    assert found is not None
    assert (found.overdue, found.seconds) == (overdue, seconds)


def test_a_node_has_what_its_last_heartbeat_reported() -> None:
    found = NodeStatus.of(node(2.0, 1.0), NOW)
    assert found.units == (UnitStatus(1, 3, 10, 0.5, 100),)
    assert (found.pending_steps, found.rows, found.state_bytes) == (2, 10, 100)
    assert found.step == StepStatus(7, 0, (3,), 2.0, overdue=False)
    starting = NodeStatus.of(NodeView("node-2", "node-2.1", "", 0, False), NOW)
    assert (starting.address, starting.units, starting.step) == ("", (), None)


def test_a_running_job_reports_every_problem_and_one_that_has_ended_none() -> None:
    view = replace(make_coordinator().view(), nodes=(node(0.5, 0.5),))
    changes: dict[str, Any] = {
        "nodes": (node(31, 0.5),),
        "deaths": {"node-2": {STEP: 2}},
        "failed_starts": {"node-3": FailedStarts(4, "OSError: no licence")},
        "standbys_without_node": 1,
    }
    bad = replace(view, **changes)
    assert JobStatus.of("words", "running", bad, 0, "OSError: the folder is gone").problems == (
        "node-1 has been taking batch 7, round 0 of task 3 for 31 s, far longer than usual",
        "node-2 died 2 times while it took batch 7, round 0",
        "node-3 failed to start 4 times in a row: OSError: no licence",
        "2 nodes are too few for the standbys: each unit lacks 1. Scale out, or lower `standbys`.",
        "results no longer reach the sink: OSError: the folder is gone",
    )
    assert JobStatus.of("words", "stopped", bad, 0).problems == ()
    assert JobStatus.of("words", "running", view, 0).problems == ()
