"""The job journal: what is appended can be read, under keys and JSON names that never change."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from storage.errors import AlreadyExists, DamagedObject, InvalidStorageInput
from storage.journal import (
    RECORD_KINDS,
    JobJournal,
    JournalRecord,
    KeysBegan,
    KeysEnded,
    MigrationBegan,
    MigrationEnded,
    ScalingDecided,
    ScalingFailed,
    ScalingRecommended,
    ScalingRefused,
)
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Bytes

AT_NS = 1_700_000_000_123_456_789
WHO = {"policy": "utilisation", "floor": 1, "ceiling": 8, "nodes": 2}
LOAD = {
    "mean_utilisation": 0.9,
    "seconds": 30.0,
    "utilisation": {"node-1": 0.9},
    "waiting_steps": {"node-1": 4},
    "batches_ahead": 1.5,
    "batches_allowed": 8,
    "queue_growth": 0.1,
}

# What a store holds, field by field: changing a name here makes older journals unreadable.
STORED: dict[str, dict[str, Any]] = {
    "began": {"mode": "live", "transfer": "store", "plan": {"tau": 1}, "workload": {"work": [1.0]}},
    "ended": {
        "outcome": "done",
        "mode": "live",
        "transfer": "store",
        "strategy": "ssm",
        "nodes_before": 2,
        "nodes_after": 3,
        "seconds": 1.5,
        "tasks_moved": 4,
        "state_bytes": 100,
        "stored_bytes": 60,
        "direct_bytes": 40,
        "background_bytes": 30,
        "error": None,
    },
    "keys began": {
        "stage": 0,
        "strategy": "knap",
        "keys": 3,
        "state_bytes": 100.0,
        "entries": 5,
        "theta": 0.08,
        "overload_before": 0.5,
        "overload_after": 0.07,
        "reason": "heavy",
        "note": "",
    },
    "keys ended": {
        "outcome": "done",
        "stage": 0,
        "strategy": "knap",
        "seconds": 0.5,
        "keys_moved": 3,
        "state_bytes": 100.0,
        "stored_bytes": 90,
        "error": None,
    },
    "decided": {**WHO, "target": 4, "reason": "busy", **LOAD},
    "recommended": {**WHO, "target": 4, "reason": "busy", **LOAD},
    "refused": {**WHO, "target": 4, "error": "NodeStartTimeout: no slot is free"},
    "failed": {**WHO, "target": None, "error": "ZeroDivisionError: division by zero"},
}
CLASSES: dict[str, type[JournalRecord]] = {
    "began": MigrationBegan,
    "ended": MigrationEnded,
    "keys began": KeysBegan,
    "keys ended": KeysEnded,
    "decided": ScalingDecided,
    "recommended": ScalingRecommended,
    "refused": ScalingRefused,
    "failed": ScalingFailed,
}


def journal(store: MemoryStore) -> JobJournal:
    return JobJournal(store, "word counts", lambda: AT_NS)


@pytest.mark.parametrize("kind", STORED)
def test_a_record_is_stored_under_its_number_with_the_names_it_always_had(kind: str) -> None:
    store = MemoryStore()
    record = CLASSES[kind].from_json(STORED[kind])
    assert journal(store).append(record) == 1
    key = "operators/word=20counts/journal/000000000001.json"
    assert json.loads(bytes(store.get(key))) == {"at_ms": AT_NS // 1_000_000, "kind": kind, **STORED[kind]}
    assert list(json.loads(bytes(store.get(key)))) == ["at_ms", "kind", *STORED[kind]]
    (found,) = journal(store).read()
    assert RECORD_KINDS[kind].from_json(found) == record


def test_every_kind_of_record_is_known() -> None:
    assert dict(RECORD_KINDS) == CLASSES


def test_records_are_read_in_both_orders_also_many_at_a_time() -> None:
    store = MemoryStore()
    for nodes in range(12):
        journal(store).append(MigrationEnded(outcome="done", nodes_before=nodes, nodes_after=nodes + 1))
    expected = list(range(12))
    assert [record["nodes_before"] for record in journal(store).read()] == expected
    assert [record["nodes_before"] for record in journal(store).read_newest_first()] == expected[::-1]
    with ThreadPoolExecutor(4) as executor:
        assert [record["nodes_before"] for record in journal(store).read(executor)] == expected


def test_a_record_of_an_older_version_may_lack_fields_and_one_of_a_newer_version_may_have_more() -> None:
    record = MigrationEnded.from_json({"outcome": "done", "nodes_before": 2, "nodes_after": 3, "colour": "red"})
    assert record == MigrationEnded(outcome="done", nodes_before=2, nodes_after=3)
    with pytest.raises(InvalidStorageInput, match="has no 'nodes_after'"):
        MigrationEnded.from_json({"outcome": "done", "nodes_before": 2})


@pytest.mark.parametrize("damaged", [b"{", b"[]", b"7"])
def test_a_damaged_record_is_named(damaged: bytes) -> None:
    store = MemoryStore()
    store.put("operators/word=20counts/journal/000000000007.json", damaged)
    with pytest.raises(DamagedObject, match=r"000000000007\.json.*Remove it"):
        list(journal(store).read())


def test_a_writer_that_loses_every_race_gives_up() -> None:
    class BusyStore(MemoryStore):
        def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
            super().put_if_absent(key, data, timeout=timeout)
            raise AlreadyExists(self.url, key)

    with pytest.raises(AlreadyExists):
        journal(BusyStore()).append(MigrationBegan())


def test_two_drivers_never_overwrite_each_others_records() -> None:
    store = MemoryStore()
    drivers = [journal(store), journal(store)]
    records = [MigrationEnded(outcome="done", nodes_before=1, nodes_after=number) for number in range(4)]
    assert [drivers[number % 2].append(record) for number, record in enumerate(records)] == [1, 2, 3, 4]
    assert [MigrationEnded.from_json(found) for found in drivers[0].read()] == records
