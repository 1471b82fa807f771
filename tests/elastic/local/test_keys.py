"""The heaviest keys of a whole job: where they are, under what name, and after moves and losses of nodes."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from elastic.core import events
from elastic.errors import KeysNotCounted
from elastic.job.job import Job
from elastic.job.keys import KeyStatus
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import Context, KeyedColumns, Operator, Stage, State
from elastic.results.errors import UnknownStage
from elastic.routing import KeyTargets, hash_key

SETTINGS = {"heartbeat_seconds": 0.02, "key_interval_seconds": 0.2, "snapshot_seconds": 600.0}
SCHEMA = pa.schema([("word", pa.string())])


class Counts(Operator):
    """Counts rows by key; gets every row, because it combines none."""

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("word string", {"count": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        state.value.count("count", state.value.rows_for(rows))


@pytest.fixture
def source() -> TableSource:
    return TableSource(LocalNetwork())


@pytest.fixture
def job(source: TableSource) -> Iterator[Job]:
    with run(source, Stage(Counts(), name="counts", grouping="table")) as job:
        yield job


def run(source: TableSource, stages: Any, **settings: Any) -> Job:
    return local_run(source, key="word", operator=stages, schema=SCHEMA, tasks=4, settings={**SETTINGS, **settings})


def send(source: TableSource, rows: Mapping[str, int]) -> None:
    source.append(pa.table({"word": [word for word, count in rows.items() for _ in range(count)]}, schema=SCHEMA))


def wait_for(job: Job, name: str) -> KeyStatus:
    """Return a key as soon as an interval has it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for key in job.keys(top=100):
            if key.name == name and key.rows:
                return key
        time.sleep(0.01)
    raise AssertionError(f"timed out after 20 s waiting for the key {name!r}")


def wait_for_measurements(job: Job) -> None:
    """Wait until all nodes have measured after the newest batch."""
    newest = job.status().last_batch
    job._driver.views.wait_for(
        lambda view: all(node.heartbeat is not None and node.heartbeat.done_batch >= newest for node in view.nodes),
        30.0,
        "a heartbeat of every node",
    )


def test_the_heaviest_keys_are_listed_with_their_names_and_places(job: Job, source: TableSource) -> None:
    send(source, {"heavy": 5_000, "light": 5})
    key = wait_for(job, "heavy")
    task = hash_key("heavy") % 4
    assert (key.hash, key.stage, key.task, key.guest) == (hash_key("heavy"), "counts", task, False)
    assert key.node == key.home == job.assignment().owners[task]
    assert (key.rows, key.seconds > 0, 0 < key.share <= 1) == (5_000, True, True)
    assert key.state_bytes > 0


def test_a_key_of_the_table_is_listed_as_a_guest_even_without_rows(job: Job, source: TableSource) -> None:
    away = next(task for task, node in enumerate(job.assignment().owners) if node != job.assignment().owners[0])
    word = next(word for word in map(str, range(100)) if hash_key(word) % 4 == 0)
    targets = KeyTargets.from_mapping(0, {hash_key(word): away})
    job._driver.post(events.RekeyRequested("rekeying-1", (targets,), (1.0,)))
    job._driver.views.wait_for(
        lambda view: view.rekeying is not None and view.rekeying.is_over, 30.0, "the key to move"
    )
    [key] = [key for key in job.keys(top=100) if key.hash == hash_key(word)]
    assert (key.task, key.guest, key.rows, key.share) == (away, True, 0, 0.0)
    wait_for_measurements(job)  # what nodes counted before they measure again after a move is dropped
    send(source, {word: 10})
    key = wait_for(job, word)
    owners = job.assignment().owners
    assert (key.guest, key.node, key.home, key.rows) == (True, owners[away], owners[0], 10)


def test_rows_are_counted_once_after_their_task_has_moved(job: Job, source: TableSource) -> None:
    send(source, {"heavy": 400})
    job.process_all_available()
    before = wait_for(job, "heavy")
    [other] = {node.name for node in job.status().nodes} - {before.node}
    assert job.scale(remove=[before.node]).wait(30)
    send(source, {"heavy": 300})
    while (key := wait_for(job, "heavy")).node != other:
        time.sleep(0.01)
    assert key.rows == 300
    assert sum(one.share for one in job.keys(top=100)) <= 1 + 1e-9


def test_rows_that_a_new_node_replays_are_not_counted(job: Job, source: TableSource) -> None:
    send(source, {"heavy": 400})
    job.process_all_available()
    node = wait_for(job, "heavy").node
    job._driver.replace_node(node, "a test wants it")
    send(source, {"heavy": 3})
    job.process_all_available()
    assert job.state("heavy") == {"count": 403}
    assert wait_for(job, "heavy").rows == 3


def test_stages_are_listed_one_by_one_or_together(source: TableSource) -> None:
    with run(source, [Stage(Counts(), name="counts")], key_statistics="all") as job:
        send(source, {"heavy": 10})
        wait_for(job, "heavy")
        assert {key.stage for key in job.keys(stage="counts")} <= {"counts"}
        assert len(job.keys(top=1)) <= 1
        with pytest.raises(UnknownStage):
            job.keys(stage="sums")


def test_keys_that_are_not_counted_are_refused_with_the_setting_that_counts_them(source: TableSource) -> None:
    with run(source, Stage(Counts(), name="counts")) as job, pytest.raises(KeysNotCounted, match="key_statistics"):
        job.keys()
    stage = Stage(Counts(), name="counts", grouping="table")
    with run(source, stage, key_statistics="off") as job, pytest.raises(KeysNotCounted, match="key_statistics"):
        job.rebalance(level="keys")
