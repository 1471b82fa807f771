"""Keys of a fake stage that is grouped by table: their work is made up, where they are is what the routing says."""

from typing import NamedTuple

import numpy as np

from elastic.control.key_loads import StageKeyLoads
from elastic.job.keys import KeyStatus
from elastic.routing import Groupings, KeyTable, Routing, TableGrouping
from migration import KeyLoads, Ownership

_INTERVAL_SECONDS = 10.0
_REST_OF_A_NODE = 0.1  # work of the keys that are not measured one by one


class PaperKey(NamedTuple):
    name: str | None
    hash: int
    rows: int
    work: float  # seconds per second
    state_bytes: int


# All but the first two are in task 0, so its node has too much work.
KEYS = (
    PaperKey("Zürich, 8001", 2**63 - 1, 1_200, 0.06, 4_096),
    PaperKey(None, -5, 10, 0.055, 16),
    *(PaperKey(f"key {number}", 720_720 * number, 1_000, 0.025, 1_024) for number in range(22)),
)
TABLE = TableGrouping(KeyTable.from_entries({KEYS[0].hash: 3}))


def measure_keys(assignment: Ownership, groupings: Groupings) -> StageKeyLoads:
    nodes, tasks = tuple(assignment.nodes), assignment.tasks
    hashes = np.sort(np.array([key.hash for key in KEYS], np.int64))
    known = {key.hash: key for key in KEYS}
    units = [groupings.unit_of(key_hash, 0) for key_hash in hashes.tolist()]
    home, current = (
        np.array([nodes.index(assignment.owners[task]) for task in places], np.int32)
        for places in ([key_hash % tasks for key_hash in hashes.tolist()], [unit.task for unit in units])
    )
    work = np.array([known[key_hash].work for key_hash in hashes.tolist()])
    size = np.array([known[key_hash].state_bytes for key_hash in hashes.tolist()], np.float64)
    rest = np.array([_REST_OF_A_NODE / len(assignment.tasks_of(owner)) for owner in assignment.owners])
    return StageKeyLoads(
        0,
        Routing(assignment, groupings),
        nodes,
        KeyLoads(hashes, home, current, work, size),
        np.array([unit.task for unit in units]),
        np.array([unit.guests for unit in units]),
        rest,
        rest,
        np.full(len(nodes), _REST_OF_A_NODE),
        np.full(len(nodes), _REST_OF_A_NODE),
    )


def list_keys(assignment: Ownership, groupings: Groupings, stage: str, top: int) -> list[KeyStatus]:
    total = sum(key.work for key in KEYS) + _REST_OF_A_NODE * len(assignment.nodes)
    return [_describe(key, assignment, groupings, stage, total) for key in KEYS[:top]]


def _describe(key: PaperKey, assignment: Ownership, groupings: Groupings, stage: str, total: float) -> KeyStatus:
    unit, owners = groupings.unit_of(key.hash, 0), assignment.owners
    return KeyStatus(
        key.name,
        key.hash,
        stage,
        unit.task,
        unit.guests,
        owners[unit.task],
        owners[key.hash % assignment.tasks],
        key.rows,
        key.work * _INTERVAL_SECONDS,
        key.work / total,
        key.state_bytes,
    )
