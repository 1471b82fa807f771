"""A whole job whose first or second stage is shuffled: exact results through everything, and balanced costs."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from elastic.core.ids import Batch
from elastic.errors import IncompatibleRestart, UnknownColumn
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import CountByKey, Stage, ToNext, stateless
from elastic.routing import ShuffleGrouping, hash_keys, parse_grouping
from elastic.routing.groupings import with_scheduler
from storage import Secret

SECRET = Secret.of("a secret of these tests")
FAST = {"heartbeat_seconds": 0.02, "key_interval_seconds": 1.0}
SCHEMA = pa.schema([("kind", pa.string()), ("id", pa.int64())])
OUTPUT = "kind string, id long"


def work(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    time.sleep(sum(0.002 if row["kind"] == "slow" else 0.0001 for row in rows))
    return rows


ENRICH = stateless(work, OUTPUT, input_format="rows")
HASHES = hash_keys([pa.array(["slow", "fast"])])


@pytest.fixture
def source() -> TableSource:
    return TableSource(LocalNetwork())


def run(source: TableSource, operator: Any, **options: Any) -> Job:
    given = {"key": (), "operator": operator, "schema": SCHEMA, "secret": SECRET, "settings": FAST, "nodes": 3}
    return local_run(source, **{**given, **options})


@pytest.fixture
def job(source: TableSource) -> Iterator[Job]:
    with run(source, Stage(ENRICH, name="enrich", grouping="shuffle", cost_key="kind")) as job:
        yield job


def send(job: Job, source: TableSource, kinds: list[str], first: int = 0) -> None:
    source.append(pa.table({"kind": kinds, "id": range(first, first + len(kinds))}, schema=SCHEMA))
    job.process_all_available()


def ids(job: Job) -> list[int]:
    return sorted(job.collected()["id"].to_pylist())


def await_costs(job: Job) -> None:
    deadline = time.monotonic() + 30
    while not job._driver.view.costs():
        assert time.monotonic() < deadline, "no node has reported costs"
        time.sleep(0.01)


def test_rows_are_emitted_once_while_nodes_join_and_die(job: Job, source: TableSource) -> None:
    for batch in range(5):
        send(job, source, ["slow", "fast"] * 20, 40 * batch)
        if batch == 1:
            job.scale(4).wait()
        if batch == 2:
            job._driver.replace_node("node-1", "a test says so")
        if batch == 3:
            job.scale(2).wait()
    assert ids(job) == list(range(200))


def test_senders_learn_what_rows_cost(job: Job, source: TableSource) -> None:
    deadline, batches, known = time.monotonic() + 30, 0, [1.0, 1.0]
    while known[0] <= 3 * known[1]:  # a few rows are measured now and then
        assert time.monotonic() < deadline, f"senders believe that rows take {known}"
        send(job, source, ["slow", "fast"] * 20, 40 * batches)
        batches += 1
        forecast = job._ingest._forecast(Batch(9), 0)
        known = forecast.estimate(HASHES).tolist()
    assert forecast.batch == 9
    send(job, source, ["slow", "fast"] * 20, 40 * batches)
    assert set(job._driver.view.work_ends) == {"node-1", "node-2", "node-3"}  # the batch was forecast
    assert ids(job) == list(range(40 * (batches + 1)))


def test_rows_without_a_cost_are_taken_too(source: TableSource) -> None:
    with run(source, Stage(ENRICH, grouping="shuffle", cost_key="kind")) as job:
        source.append(pa.table({"kind": [None, "fast"], "id": [0, 1]}, schema=SCHEMA))
        job.process_all_available()
        assert ids(job) == [0, 1]


def test_rows_on_which_a_shuffled_operator_fails_are_quarantined_once_and_all_others_emitted(
    source: TableSource,
) -> None:
    def picky(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if any(row["id"] == 13 for row in rows):
            raise ValueError("unlucky")
        return rows

    stage = Stage(stateless(picky, OUTPUT, input_format="rows"), grouping="shuffle", cost_key="kind")
    with run(source, stage, sink="store", settings={**FAST, "on_error": "skip"}) as job:
        columns = ["row", "error", "_batch", "_task"]
        assert job.quarantined().column_names == columns
        send(job, source, ["slow", "fast"] * 5)
        assert (job.quarantined().column_names, job.quarantined().num_rows) == (columns, 0)
        send(job, source, ["slow", "fast"] * 5, 10)
        assert job.quarantined().column_names == columns
        [row] = job.quarantined()["row"].to_pylist()
        assert '"id": 13' in row
        assert job._results is not None
        emitted = [row for batch in (0, 1) for row in job._results.read(batch, "picky")["id"].to_pylist()]
        assert sorted(emitted) == [number for number in range(20) if number != 13]


@pytest.mark.parametrize("scheduler", ["round-robin", "posg", "posg-batch"])
def test_nodes_shuffle_what_they_send_to_the_next_stage(source: TableSource, scheduler: str) -> None:
    split = stateless(lambda rows: ToNext(rows), OUTPUT)
    split.emits = frozenset({"next"})  # type: ignore[misc]
    stages = [
        Stage(split, "id", "split"),
        Stage(ENRICH, "id", "enrich", grouping="shuffle", scheduler=scheduler, cost_key="kind"),
        Stage(CountByKey(), "kind", "counts"),
    ]
    with run(source, stages, key="id") as job:
        for batch in range(4):
            send(job, source, ["slow", "fast", "fast"] * 20, 60 * batch)
            if scheduler != "round-robin":
                await_costs(job)
            if batch == 1:
                job.scale(2).wait()
        assert (job.state("slow", "counts"), job.state("fast", "counts")) == (80, 160)
        grouping = job._driver.view.routing.groupings[1]
        assert grouping == ShuffleGrouping(scheduler)


def test_a_job_continues_with_another_scheduler_or_grouping(source: TableSource, tmp_path: Path) -> None:
    store = tmp_path.as_uri()
    declared: list[dict[str, Any]] = [
        {"grouping": "hash"},
        {"grouping": "shuffle", "scheduler": "round-robin"},
        {"grouping": "shuffle", "cost_key": "id"},
        {"grouping": "hash"},
    ]
    for life, options in enumerate(declared):
        with run(source, Stage(ENRICH, "kind", "enrich", **options), store=store, name="life", sink="store") as job:
            send(job, source, ["slow", "fast"] * 5, 10 * life)
            assert job._results is not None
            assert job._driver.view.routing.groupings[0] == parse_grouping(
                with_scheduler(options["grouping"], options.get("scheduler"))
            )
            counts = Counter(
                row for batch in range(life + 1) for row in job._results.read(batch, "enrich")["id"].to_pylist()
            )
            assert counts == Counter(range(10 * life + 10))


def test_a_table_or_a_partial_stage_does_not_become_a_shuffle(source: TableSource, tmp_path: Path) -> None:
    store = tmp_path.as_uri()
    with run(source, Stage(ENRICH, "kind", "enrich", grouping="table"), store=store, name="life"):
        pass
    with pytest.raises(IncompatibleRestart, match="grouping of stage 'enrich'"):
        run(source, Stage(ENRICH, "kind", "enrich", grouping="shuffle"), store=store, name="life")


def test_a_cost_key_that_is_no_column_is_refused_before_anything_starts(source: TableSource) -> None:
    with pytest.raises(UnknownColumn, match="price"):
        run(source, Stage(ENRICH, grouping="shuffle", cost_key="price"))
