"""What an engine's journal says of its migrations; the journal is written by `elastic.control.journal`."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import storage
from mdp.errors import InvalidLog
from mdp.learning.node_counts import NodeCounts
from migration import Workload
from storage.stores.keys import name_segment
from storage.stores.protocol import Entry, Store

_AT_ONCE = 8  # requests: records are small, and a distant store takes its time for each


class Done(NamedTuple):
    """A migration that came to its end."""

    at_ms: int
    nodes_before: int
    nodes_after: int


def read_journal(url: str, job: str, **store_settings: Any) -> NodeCounts:
    """The node counts between the migrations of a job that were done, to be learned with `repeats="rebalance"`.

    A migration that was cancelled or failed is none that the matrix should expect. Where counts do not continue (it
    left some others behind, or the job was started anew with other nodes), a new run begins. A request that moved
    nothing was no migration.
    """
    store = storage.open(url, **store_settings)
    try:
        done = list(migrations_done(store, job))
    finally:
        store.close()
    if not done:
        raise InvalidLog(f"the journal of {job!r} in {store.url} has no migration that was done. Scale the job first.")
    nodes, times, runs = [], [], []
    run, now = -1, None
    for migration in done:
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
    """Work and state of every task, as measured when the latest migration of a job began."""
    store = storage.open(url, **store_settings)
    try:
        for entry in sorted(store.list(_folder(job)), reverse=True):
            record = _record(store, entry.key)
            if "workload" in record:
                return Workload.from_dict(record["workload"])
    finally:
        store.close()
    raise InvalidLog(f"the journal of {job!r} in {store.url} knows no workload. Scale the job once, or give one.")


def migrations_done(store: Store, job: str) -> Iterator[Done]:
    """In the order in which they ended."""
    folder = _folder(job)

    def read(entry: Entry) -> Mapping[str, Any]:
        return _record(store, entry.key)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="journal") as executor:
        for record in executor.map(read, sorted(store.list(folder))):
            if record.get("kind") == "ended" and record.get("outcome") == "done":
                done = _done(record, store, folder)
                if done.nodes_before != done.nodes_after or record.get("tasks_moved"):
                    yield done


def _folder(job: str) -> str:
    return f"operators/{name_segment(job)}/journal/"


def _record(store: Store, key: str) -> Mapping[str, Any]:
    try:
        record = json.loads(bytes(store.get(key).data))
    except ValueError as cause:
        raise InvalidLog(f"{key} in {store.url} is no record: {cause}. Take it out of the journal.") from cause
    if not isinstance(record, dict):
        raise InvalidLog(f"{key} in {store.url} is no record. Take it out of the journal.")
    return record


def _done(record: Mapping[str, Any], store: Store, folder: str) -> Done:
    try:
        return Done(int(record["at_ms"]), int(record["nodes_before"]), int(record["nodes_after"]))
    except (KeyError, TypeError, ValueError) as cause:
        where = f"{folder} in {store.url}"
        raise InvalidLog(f"the record {dict(record)} of {where} lacks {cause}. Take it out.") from cause
