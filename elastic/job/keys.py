"""The heaviest keys of a job and its key tables, made from the driver's view."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from elastic.control.key_loads import collect_keys
from elastic.core.view import JobView
from elastic.results import Description
from elastic.routing import Groupings, TableGrouping


@dataclass(frozen=True)
class KeyStatus:
    """A key in the last interval of its node (setting `key_interval_seconds`).

    `name` is the key as text; None unless it is among the heaviest of its node. `node` has it, among the guests of
    `task` or in it; `home` is the node that its hash leads to. `share` is its part of the work of the stage.
    """

    name: str | None
    hash: int
    stage: str
    task: int
    guest: bool
    node: str
    home: str
    rows: int
    seconds: float
    share: float
    state_bytes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class KeyTableStatus:
    """The key table of a stage: how many entries it has, and how many of its keys each task hosts as guests."""

    stage: str
    entries: int
    guests: Mapping[int, int]  # by task, ascending; tasks without guests are left out


def list_key_tables(groupings: Groupings, pipeline: Description) -> list[KeyTableStatus]:
    """Return the tables of all stages that are grouped by table. O(entries)."""
    found = []
    for number, stage in enumerate(pipeline.stages):
        grouping = groupings[number]
        if isinstance(grouping, TableGrouping):
            tasks, counts = np.unique(grouping.table.tasks, return_counts=True)
            guests = dict(zip(tasks.tolist(), counts.tolist(), strict=True))
            found.append(KeyTableStatus(stage.name, len(grouping.table), guests))
    return found


def list_keys(view: JobView, pipeline: Description, stages: Sequence[int], top: int) -> list[KeyStatus]:
    """Return the keys with the most work, heaviest first."""
    found = [key for stage in stages for key in _list_stage(view, pipeline, stage, top)]
    return [key for _, key in sorted(found, key=lambda one: -one[0])[:top]]


def _list_stage(view: JobView, pipeline: Description, stage: int, top: int) -> Iterator[tuple[float, KeyStatus]]:
    """Yield keys with their work."""
    keys = collect_keys(view.nodes, view.routing, stage)
    tasks, homes, are_guests = keys.tasks.tolist(), keys.home_tasks.tolist(), keys.are_guests.tolist()
    owners, total = view.routing.assignment.owners, keys.total_work
    for place in np.argsort(-keys.work, kind="stable")[:top].tolist():
        key_hash, work = int(keys.hashes[place]), float(keys.work[place])
        yield (
            work,
            KeyStatus(
                keys.names.get(key_hash),
                key_hash,
                pipeline.stages[stage].name,
                tasks[place],
                are_guests[place],
                owners[tasks[place]],
                owners[homes[place]],
                int(keys.rows[place]),
                float(keys.seconds[place]),
                work / total if total else 0.0,
                int(keys.state_bytes[place]),
            ),
        )
