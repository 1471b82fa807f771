"""Standbys for a whole job, whatever its stages: units with state have them, and no row is lost or counted twice."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import CountByKey, Stage, partial, stateless
from storage import Secret

SECRET = Secret.of("a secret of these tests")
TASKS = 6
SCHEMA = pa.schema([("word", pa.string())])
WORDS = [f"word-{number % 20}" for number in range(100)]


def keep(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows


ENRICH = stateless(keep, "word string", input_format="rows")
COUNT = Stage(CountByKey(), ("word",), "counts")
STAGES: dict[str, tuple[Sequence[Stage], int]] = {  # and the stages that have state
    "hash": ([COUNT], 1),
    "table": ([Stage(CountByKey(), ("word",), "counts", grouping="table")], 1),
    "stateless": ([Stage(ENRICH, ("word",), "enrich"), COUNT], 1),
    "shuffle": ([Stage(ENRICH, name="enrich", grouping="shuffle"), COUNT], 1),
    "partial": (partial(COUNT), 2),
}


def run(source: TableSource, stages: Sequence[Stage], standbys: int = 1) -> Job:
    settings = {"heartbeat_seconds": 0.05, "standbys": standbys}
    return local_run(
        source, key="word", operator=list(stages), schema=SCHEMA, secret=SECRET, settings=settings, nodes=3, tasks=TASKS
    )


def send(job: Job, source: TableSource, times: int) -> None:
    for _ in range(times):
        source.append(pa.table({"word": WORDS}, schema=SCHEMA))
    job.process_all_available()


def await_standbys(job: Job, units: int) -> None:
    job._driver.views.wait_for(lambda view: sum(map(len, view.standbys.values())) == units, 60.0, "standbys")


@pytest.mark.parametrize("kind", STAGES)
def test_units_with_state_have_standbys_that_take_over(kind: str) -> None:
    stages, with_state = STAGES[kind]
    source = TableSource(LocalNetwork())
    with run(source, stages) as job:
        send(job, source, 2)
        units = with_state * TASKS * (2 if kind == "table" else 1)  # and the guests of a table
        await_standbys(job, units)
        job._driver.replace_node("node-2", "a test says so")
        send(job, source, 2)
        assert "node-2" not in job.assignment().owners
        await_standbys(job, units)
        job.scale(2, mode="warm").wait(60)
        send(job, source, 1)
        expected = {word: 5 * count for word, count in Counter(WORDS).items()}
        assert {word: job.state(word, "counts", fresh=kind == "partial") for word in expected} == expected


def test_a_job_without_state_has_no_standbys_and_loses_no_row() -> None:
    source = TableSource(LocalNetwork())
    with run(source, [Stage(ENRICH, name="enrich", grouping="shuffle")], standbys=2) as job:
        send(job, source, 2)
        job._driver.replace_node("node-2", "a test says so")
        send(job, source, 2)
        assert (job.routing().standbys, job._driver.view.standbys) == ((), {})
        assert Counter(job.collected()["word"].to_pylist()) == Counter(4 * WORDS)
        planned = job.plan(2, mode="warm")
        assert (planned.standbys, planned.copies) == (None, ())


@pytest.mark.parametrize("standbys", [-1, 1.5, "many", float("nan"), True])
def test_a_number_of_standbys_that_cannot_be_is_refused(standbys: Any) -> None:
    with pytest.raises(InvalidJob, match="standbys"):
        Stage(CountByKey(), ("word",), standbys=standbys)
