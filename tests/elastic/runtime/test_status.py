"""What a status calls a problem."""

from typing import Any

import pytest

from elastic.runtime.status import JobStatus, StepStatus

FOUND: dict[str, Any] = {
    "epoch": 1,
    "last_batch": 7,
    "published_batch": 6,
    "saved_batch": 5,
    "batches_ahead": 1,
    "serving": ["node-1"],
    "losses": 0,
    "recoveries": [],
    "nodes": {"node-1": {"address": "127.0.0.1:1", "pid": 1}},
}


def step(seconds: float, usual_seconds: float) -> dict[str, Any]:
    return {"batch": 7, "round": 0, "tasks": [3], "seconds": seconds, "usual_seconds": usual_seconds}


@pytest.mark.parametrize(
    ("seconds", "usual_seconds", "overdue"), [(29, 0, False), (31, 0, True), (31, 3.2, False), (33, 3.2, True)]
)
def test_a_step_is_overdue_after_30_seconds_and_ten_times_what_is_usual(
    seconds: float, usual_seconds: float, overdue: bool
) -> None:
    assert StepStatus.of(step(seconds, usual_seconds)).overdue is overdue


def test_a_running_job_tells_every_problem_and_one_that_has_ended_none() -> None:
    node = {**FOUND["nodes"]["node-1"], "step": step(31, 0.5)}
    found = {
        **FOUND,
        "nodes": {"node-1": node},
        "deaths": [("node-2", 7, 0, 2)],
        "failed_starts": {"node-3": (4, "OSError: no licence")},
    }
    problems = JobStatus.of("words", "running", found, 0, OSError("the folder is gone")).problems
    assert problems == (
        "node-1 has been taking batch 7, round 0 of task 3 for 31 s, far longer than usual",
        "node-2 died 2 times while it took batch 7, round 0",
        "node-3 failed to start 4 times in a row: OSError: no licence",
        "results no longer reach the sink: OSError: the folder is gone",
    )
    assert JobStatus.of("words", "stopped", found, 0).problems == ()
    assert JobStatus.of("words", "running", FOUND, 0).problems == ()
