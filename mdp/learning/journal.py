"""Migrations in the journal of a job (`storage.journal`)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import storage
from mdp.errors import InvalidLog
from mdp.learning.node_counts import NodeCounts
from migration import Workload
from storage.errors import DamagedObject, InvalidStorageInput
from storage.journal import JobJournal, MigrationBegan, MigrationEnded
from storage.stores.protocol import Store

_READS_AT_ONCE = 8  # records are small, and a distant store takes milliseconds for each


class CompletedMigration(NamedTuple):
    """A migration whose outcome is "done"."""

    at_ms: int
    nodes_before: int
    nodes_after: int


def read_journal(url: str, job: str, **store_settings: Any) -> NodeCounts:
    """Return the node counts between the completed migrations of a job, to learn from with `repeats="rebalance"`.

    The matrix should not expect a migration that was cancelled or failed. Where counts do not continue (such a
    migration left others behind, or the job was restarted with other nodes), a new run begins. A request that moved
    nothing was no migration.
    """
    store = storage.open(url, **store_settings)
    try:
        migrations = list(read_completed_migrations(store, job))
    finally:
        store.close()
    if not migrations:
        raise InvalidLog(f"the journal of {job!r} in {store.url} has no migration that was done. Scale the job first.")
    nodes, times, runs = [], [], []
    run, now = -1, None
    for migration in migrations:
        if migration.nodes_before != now:
            run += 1
            nodes.append(migration.nodes_before)
            times.append(migration.at_ms)
            runs.append(run)
        now = migration.nodes_after
        nodes.append(now)
        times.append(migration.at_ms)
        runs.append(run)
    source = f"journal of {job} in {store.url}"
    return NodeCounts(nodes, np.array(times, "datetime64[ms]").astype("datetime64[us]"), runs, {"source": source})


def newest_workload(url: str, job: str, **store_settings: Any) -> Workload:
    """Return work and state of every task, as measured when the latest migration of a job began."""
    store = storage.open(url, **store_settings)
    try:
        for record in JobJournal(store, job).read_newest_first():
            if record.get("kind") == MigrationBegan.kind and "workload" in record:
                return Workload.from_dict(record["workload"])
    except DamagedObject as damaged:
        raise InvalidLog(f"{store.url}: {damaged}") from damaged
    finally:
        store.close()
    raise InvalidLog(f"the journal of {job!r} in {store.url} knows no workload. Scale the job once, or give one.")


def read_completed_migrations(store: Store, job: str) -> Iterator[CompletedMigration]:
    """Iterate over the migrations that were done and moved something, in the order in which they ended."""
    journal = JobJournal(store, job)
    try:
        with ThreadPoolExecutor(_READS_AT_ONCE, thread_name_prefix="journal") as executor:
            for record in journal.read(executor):
                if record.get("kind") == MigrationEnded.kind and record.get("outcome") == "done":
                    ended = MigrationEnded.from_json(record)
                    if ended.nodes_before != ended.nodes_after or ended.tasks_moved:
                        yield CompletedMigration(int(record["at_ms"]), int(ended.nodes_before), int(ended.nodes_after))
    except (DamagedObject, InvalidStorageInput, KeyError, TypeError, ValueError) as error:
        raise InvalidLog(f"the journal {journal.folder} in {store.url} cannot be read: {error}") from error
