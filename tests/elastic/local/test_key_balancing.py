"""Balancing by keys on a whole job inside one process: measured, planned, moved while rows come, and recorded."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from elastic.control import KeyMigration, TaskMigration
from elastic.errors import InvalidRequest, KeysCannotMove, KeysNotMeasured, MigrationInProgress
from elastic.job.job import Job
from elastic.local import LocalNetwork
from elastic.local.run import TableSource, local_run
from elastic.operators import Context, CountByKey, KeyedOperator, Stage, ValueState
from elastic.results.errors import UnknownStage
from migration.errors import UnknownStrategy
from storage import Secret

SECRET = Secret.of("a secret of these tests")
INTERVAL_SECONDS = 0.4
SETTINGS = {"heartbeat_seconds": 0.1, "key_interval_seconds": INTERVAL_SECONDS}
KEYS, ROWS, SKEW = 400, 200, 1.1
SECONDS_PER_ROW = 400e-6  # far more than what a call for a key costs besides


class SlowCount(KeyedOperator):
    """Counts rows, each of which takes the same time."""

    output_schema = "key long, count long"

    def handle_key(self, key: int, rows: list[Any], state: ValueState, _: Context) -> dict[str, int]:
        time.sleep(SECONDS_PER_ROW * len(rows))
        state.update((state.get() or 0) + len(rows))
        return {"key": key, "count": state.get()}


class Feed:
    """Rows of skewed keys, batch after batch, until it is stopped."""

    def __init__(self, source: TableSource, seed: int = 1) -> None:
        self.sent: Counter[int] = Counter()
        self._source = source
        self._chance = np.random.default_rng(seed)
        weights = 1 / np.arange(1, KEYS + 1) ** SKEW
        self._weights = weights / weights.sum()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        while not self._stopping.wait(0.03):
            keys = self._chance.choice(KEYS, ROWS, p=self._weights)
            self.sent.update(keys.tolist())
            self._source.append(pa.table({"key": keys}))

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def run_skewed(**options: Any) -> tuple[Job, Feed]:
    source = TableSource(LocalNetwork(), ())
    stage = Stage(SlowCount(), "key", grouping=options.pop("grouping", "table"))
    schema = pa.schema([("key", pa.int64())])
    job = local_run(source, key="key", operator=stage, schema=schema, nodes=3, tasks=12, secret=SECRET, **options)
    return job, Feed(source)


def until_measured(job: Job, intervals: float = 2.5) -> None:
    """Wait until the statistics are of whole intervals that began after now."""
    time.sleep(intervals * INTERVAL_SECONDS)
    deadline = time.monotonic() + 20
    while True:
        assert job.status().state == "running"
        try:
            job.plan_keys()
        except KeysNotMeasured:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


def check_counts(job: Job, feed: Feed) -> None:
    """Compare the state and the results with what was sent."""
    feed.stop()
    job.process_all_available()
    assert {key: job.state(key) for key in feed.sent} == feed.sent
    results = job.collected()
    newest = {row["key"]: row["count"] for row in results.to_pylist()}
    assert newest == feed.sent
    counts = Counter((row["key"], row["count"]) for row in results.to_pylist())
    assert max(counts.values()) == 1  # no result came twice


@pytest.fixture
def skewed() -> Iterator[tuple[Job, Feed]]:
    job, feed = run_skewed(settings=SETTINGS)
    with job:
        until_measured(job)
        yield job, feed
        feed.stop()


def test_the_keys_of_a_plan_move_to_their_nodes_and_no_row_is_lost(skewed: tuple[Job, Feed]) -> None:
    job, feed = skewed
    migration = job.rebalance(level="keys", theta=0.0)
    assert isinstance(migration, KeyMigration)
    assert migration.wait(30)
    progress = migration.progress()
    assert (progress.phase, progress.keys_done, progress.tasks) == ("done", len(migration.plan.moves), 0)
    assert progress.keys_done > 0
    assert migration.plan.theta_reached < migration.plan.theta_before
    routing = job.routing()
    for move in migration.plan.moves:
        assert routing.owners(routing.groupings.unit_of(move.hash, 0)) == (move.target,)
    began, ended = job.journal()
    assert (began["kind"], began["keys"]) == ("keys began", progress.keys_done)
    assert (ended["kind"], ended["outcome"], ended["keys_moved"]) == ("keys ended", "done", progress.keys_done)
    assert any("groupings are committed" in line for line in migration.story())
    check_counts(job, feed)


def _create_class() -> type:
    """Return a class that no module has, so that every part of keys has its code."""

    class Record:
        def __init__(self, data: bytes) -> None:
            self.data = data

    return Record


Record = _create_class()
PAYLOADS: dict[str, Callable[[np.random.Generator], Any]] = {
    "bytes": lambda chance: chance.bytes(4_000),
    "list": lambda chance: chance.integers(2**39, 2**40, 500).tolist(),  # of which the size is only estimated
    "object": lambda chance: Record(chance.bytes(4_000)),
}


class Payload(KeyedOperator):
    """Keeps four kilobytes for every key."""

    output_schema = "key long"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def handle_key(self, key: int, _rows: list[Any], state: ValueState, _: Context) -> None:
        state.update(PAYLOADS[self._kind](np.random.default_rng(key)))


@pytest.mark.parametrize("kind", PAYLOADS)
def test_a_plan_counts_what_its_keys_take_in_the_log(kind: str) -> None:
    chance = np.random.default_rng(3)
    batches = [pa.table({"key": chance.zipf(1.4, 3_000) % KEYS}) for _ in range(2)]
    stage, settings = Stage(Payload(kind), "key", grouping="table"), {**SETTINGS, "compression": "none"}
    with local_run(batches, key="key", operator=stage, nodes=3, tasks=12, secret=SECRET, settings=settings) as job:
        job.process_all_available()
        until_measured(job, intervals=1)
        migration = job.rebalance(level="keys", theta=0.0)
        assert isinstance(migration, KeyMigration)
        assert migration.wait(30)
        plan, progress = migration.plan, migration.progress()
        assert progress.keys_done == len(plan.moves) > 0
        assert progress.bytes_done == progress.bytes == pytest.approx(plan.cost + plan.overhead)
        assert progress.bytes / 1.02 <= progress.stored_bytes <= progress.bytes * 1.01
        began, ended = job.journal()
        assert began["state_bytes"] == ended["state_bytes"] == pytest.approx(progress.bytes)


def test_keys_stay_where_they_are_when_nodes_join_and_leave(skewed: tuple[Job, Feed]) -> None:
    job, feed = skewed
    assert job.rebalance(level="keys", theta=0.05).wait(30)
    [table] = job.key_tables()
    assert sum(table.guests.values()) == table.entries
    for nodes in (4, 2):
        assert job.scale(nodes).wait(30)
    assert job.key_tables() == [table]
    until_measured(job)
    assert job.rebalance(level="keys", theta=0.05).wait(30)
    check_counts(job, feed)


def test_auto_explains_which_level_it_chose(skewed: tuple[Job, Feed]) -> None:
    job, feed = skewed
    assert job.plan_levels(theta=0.1).keys is not None
    with pytest.raises(UnknownStrategy):  # and not a choice of the other level
        job.rebalance(level="auto", key_strategy="knapsack")
    migration = job.rebalance(level="auto", theta=0.1)
    assert migration.wait(30)
    # The request plans anew with what is measured by then, so either level may win; test_levels has the rule.
    assert isinstance(migration, KeyMigration if migration.level == "keys" else TaskMigration)
    assert f"level {migration.level}: moving" in migration.plan.note
    check_counts(job, feed)


def test_only_one_migration_is_under_way_whatever_it_moves(skewed: tuple[Job, Feed]) -> None:
    job, feed = skewed
    migration = job.rebalance(level="keys", theta=0.0, bytes_per_node=1)
    migration.pause()
    with pytest.raises(MigrationInProgress):
        job.scale(2)
    with pytest.raises(MigrationInProgress):
        job.rebalance(level="keys")
    migration.cancel()
    assert migration.wait(30)
    assert migration.phase == "cancelled"
    assert migration.progress().keys_done < len(migration.plan.moves)
    assert job.scale(2).wait(30)
    check_counts(job, feed)


def test_a_rekeying_needs_no_rows(skewed: tuple[Job, Feed]) -> None:
    job, feed = skewed
    feed.stop()
    job.process_all_available()
    migration = job.rebalance(level="keys", theta=0.05)
    assert migration.wait(10)
    assert migration.phase == "done"
    assert {key: job.state(key) for key in feed.sent} == feed.sent


def test_a_job_stops_in_the_middle_of_a_rekeying(skewed: tuple[Job, Feed]) -> None:
    job, feed = skewed
    job.rebalance(level="keys", theta=0.0, bytes_per_node=1)
    feed.stop()
    report = job.stop()
    assert report.is_clean, report


def test_a_stage_that_is_grouped_by_hash_is_refused_with_what_to_do() -> None:
    job, feed = run_skewed(grouping="hash", settings=SETTINGS)
    with job:
        with pytest.raises(KeysCannotMove, match='grouping="table"'):
            job.rebalance(level="keys")
        feed.stop()


def test_requests_that_make_no_sense_are_refused() -> None:
    source = TableSource(LocalNetwork(), ())
    schema = pa.schema([("key", pa.int64())])
    stage = Stage(CountByKey(), "key", grouping="table")
    with local_run(source, key="key", operator=stage, schema=schema, secret=SECRET, settings=SETTINGS) as job:
        for wrong in (
            {"level": "rows"},
            {"level": ["keys"]},
            {"level": "tasks", "mode": ["warm"]},
            {"level": "keys", "tau": 0.1},
            {"level": "keys", "theta": -1},
            {"level": "keys", "theta": float("nan")},
            {"level": "keys", "theta": float("inf")},
            {"level": "keys", "theta": 10**400},
            {"level": "keys", "most_entries": 0},
            {"level": "keys", "bytes_per_node": float("nan")},
            {"level": "keys", "relax": "no"},
            {"level": "auto", "strategy": "ssm"},
            {"level": "auto", "speed": 9},
        ):
            with pytest.raises(InvalidRequest):
                job.rebalance(**wrong)
        for top in (0, -1, 1.5, None, "all"):
            with pytest.raises(InvalidRequest, match="top="):
                job.keys(top=top)  # type: ignore[arg-type]
        for ask in (job.plan_levels, partial(job.rebalance, level="auto")):
            with pytest.raises(UnknownStage):  # and not a choice of the other level
                ask(stage="sums")
        with pytest.raises(KeysNotMeasured, match="key_interval_seconds"):
            job.rebalance(level="keys")
