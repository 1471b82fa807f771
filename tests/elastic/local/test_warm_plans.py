"""Warm migrations of a running job with standbys: moves to nodes that follow a task carry no state."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from elastic.job.job import Job
from elastic.local.run import local_run
from elastic.operators import CountByKey
from storage import Secret

SECRET = Secret.of("a secret of these tests")
TASKS = 12
WORDS = [f"word-{number % 30}" for number in range(100)]
BATCHES = [pa.table({"word": WORDS})] * 3


def wait_for_standbys(job: Job, units: int) -> None:
    job._driver.views.wait_for(lambda view: sum(map(len, view.standbys.values())) == units, 30.0, "standbys")


@contextmanager
def start() -> Iterator[Job]:
    settings: dict[str, Any] = {"heartbeat_seconds": 0.1, "standbys": 1}
    options: dict[str, Any] = {"key": "word", "operator": CountByKey(), "secret": SECRET, "settings": settings}
    with local_run(BATCHES, nodes=3, tasks=TASKS, **options) as job:
        job.process_all_available()
        wait_for_standbys(job, TASKS)
        yield job


@pytest.fixture
def job() -> Iterator[Job]:
    with start() as job:
        yield job


@pytest.mark.parametrize("leaving", ["node-1", "node-2", "node-3"])
def test_a_scale_in_moves_no_state_where_neighbours_follow(job: Job, leaving: str) -> None:
    migration = job.scale(remove=[leaving], mode="warm", tau=5.0)
    planned = migration.plan
    assert migration.wait(30)
    assert (planned.cost, planned.total_state > 0) == (0, True)
    assert planned.switches == planned.moves
    progress = migration.progress()
    assert (progress.tasks_done, progress.bytes_done, progress.stored_bytes) == (len(planned.moves), 0, 0)
    assert leaving not in job.assignment().owners
    assert {word: job.state(word) for word in set(WORDS)} == {word: 3 * count for word, count in Counter(WORDS).items()}
    wait_for_standbys(job, TASKS)
    assert planned.standbys is not None
    assert job.routing().standbys == planned.standbys.nodes_by_task
    ended = job.journal()[-1]
    assert (ended["kind"], ended["state_bytes"]) == ("ended", 0)
    assert ended["background_bytes"] == planned.background_cost > 0


def test_other_modes_carry_all_state_that_moves(job: Job) -> None:
    planned = job.plan(2, mode="progressive", tau=5.0)
    assert planned.standbys is None
    assert planned.cost > 0


def test_a_plan_counts_the_work_of_standbys_as_nodes_have_measured_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elastic.control.standbys.LEAST_SECONDS", 1e-6)
    settings: dict[str, Any] = {"heartbeat_seconds": 0.1, "standbys": 1}
    with local_run(
        BATCHES, nodes=3, tasks=TASKS, key="word", operator=CountByKey(), secret=SECRET, settings=settings
    ) as job:
        job.process_all_available()
        wait_for_standbys(job, TASKS)

        def is_measured(view: Any) -> bool:
            return all(node.heartbeat and any(one.rows for one in node.heartbeat.standbys) for node in view.nodes)

        job._driver.views.wait_for(is_measured, 30.0, "steps of standbys")
        planned = job.plan(2, mode="warm", tau=5.0)
        assert planned.standby_share > 0
        assert planned.reason.endswith("as measured")
        assert f"a standby counts as {planned.standby_share:g} of the work" in str(planned)
        assert sum(planned.loads) > 0
