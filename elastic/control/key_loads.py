"""The load of the keys of a stage, from the heartbeats of all nodes: what a plan by key is made from. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from elastic.core.ids import UnitId
from elastic.core.key_statistics import KeyStatistics, UnitKeys
from elastic.core.nodes import NodeView
from elastic.errors import KeysNotMeasured
from elastic.operators.key_records import NO_RECORDS, RecordBytes
from elastic.routing import Routing, TableGrouping, to_tasks
from migration.keys import KeyLoads
from storage.state import TASKS_PER_STAGE

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# A unit that came to its node within this last part of an interval is taken to have been there that long: what it did
# in a few milliseconds says little about its rate.
_LEAST_SHARE = 0.1
_ROUNDING = 1e-9  # of sums of seconds


@dataclass(frozen=True, eq=False)
class StageKeys:
    """The measured keys of a stage, each once, ascending by hash; all columns have one length.

    They are the heaviest keys of every node, and every key of the stage's key table. Each is in the unit where the
    routing places it now, which may not be the unit that counted it. `rows` and `seconds` are those of the last
    interval of the nodes, which is not of the same length for all; `work` is in seconds of processing per batch, or per
    second.

    All other keys together are the remainder, by unit. Units that no heartbeat of their owner reported are missing.
    """

    stage: int
    routing: Routing
    hashes: Integers
    unit_numbers: Integers
    rows: Integers
    seconds: Floats
    work: Floats
    state_bytes: Integers
    names: Mapping[int, str]  # of the heaviest, by hash
    remainder_work: Mapping[UnitId, float] = field(repr=False)
    remainder_bytes: Mapping[UnitId, float] = field(repr=False)
    variance: float = 0.0  # of all work, as if rows came independently of each other
    is_table_reported: bool = True  # whether all keys of the table are in reports: not if they moved since

    @cached_property
    def total_work(self) -> float:
        return float(self.work.sum()) + sum(self.remainder_work.values())

    @property
    def home_tasks(self) -> Integers:
        """The task that the hash of each key leads to."""
        return to_tasks(self.hashes, self.routing.groupings.tasks)

    @property
    def tasks(self) -> Integers:
        """The task where each key is: its own, or the one that it is a guest of."""
        tasks: Integers = self._places % TASKS_PER_STAGE
        return tasks

    @property
    def are_guests(self) -> npt.NDArray[np.bool_]:
        are_guests: npt.NDArray[np.bool_] = self._places >= TASKS_PER_STAGE
        return are_guests

    @property
    def _places(self) -> Integers:
        return self.unit_numbers - UnitId(self.stage, 0).number

    @property
    def unmeasured(self) -> tuple[UnitId, ...]:
        """The units of the stage about which nothing is known."""
        return tuple(unit for unit in self.routing.units(self.stage) if unit not in self.remainder_work)


@dataclass(frozen=True, eq=False)
class StageKeyLoads:
    """The input of `migration.plan_keys` for one stage.

    `loads` are the keys that can move; node i is `nodes[i]`. Nodes that own no task, as after a failover, are left out:
    keys can only be guests of a task. `pinned_work` and `pinned_size` are by node: the keys that were not measured one
    by one, which stay where they are. `tasks` is where each key is now, and `are_guests` whether it has an entry in the
    key table. `records` is what moves take in the log besides the states. Loads are those of one interval; `load_error`
    is by how much they differ in another one by chance alone. `routing` is the one that they were read with.
    """

    stage: int
    routing: Routing
    nodes: tuple[str, ...]
    loads: KeyLoads
    tasks: Integers
    are_guests: npt.NDArray[np.bool_]
    remainder_work: Floats  # by task, with its guests
    remainder_size: Floats
    pinned_work: Floats
    pinned_size: Floats
    load_error: float = 0.0  # relative standard error of the load of a node that carries the mean
    protected: int = 0  # entries of the table that protected keys need wherever they are
    records: RecordBytes = NO_RECORDS
    part_bytes: float = 0.0  # of a part besides its keys, as nodes have measured; 0 if none has

    def sizes(self) -> dict[int, float]:
        """Return the bytes of the state of each key, by hash."""
        return dict(zip(self.loads.hashes.tolist(), self.loads.size.tolist(), strict=True))


def collect_keys(nodes: Iterable[NodeView], routing: Routing, stage: int) -> StageKeys:
    """Merge what the nodes report of the keys of a stage.

    A unit counts on the node that owns it and on no other, so one that has moved is counted once. Work is per batch if
    every node completed one in its interval: all nodes take the same batches, while in the same time one may complete a
    batch more than another. Otherwise it is per second.
    """
    reports = {
        node.name: node.heartbeat.keys
        for node in nodes
        if node.heartbeat is not None and node.heartbeat.keys is not None
    }
    per_batch = all(report.batches for report in reports.values())
    found = [
        _read_report(report, node, routing, stage, report.batches if per_batch else report.seconds)
        for node, report in reports.items()
    ]
    grouping = routing.groupings[stage]
    table = grouping.table.hashes if isinstance(grouping, TableGrouping) else np.zeros(0, np.int64)
    hashes, places = np.unique(np.concatenate([*(one.hashes for one in found), table]), return_inverse=True)
    places = places[: len(places) - len(table)]

    def add_up(columns: Iterable[npt.NDArray[Any]]) -> Floats:
        return _add_up(places, np.concatenate([*columns, np.zeros(0)]), len(hashes))

    return StageKeys(
        stage,
        routing,
        hashes,
        routing.unit_numbers(hashes, stage),
        add_up(one.rows for one in found).astype(np.int64),
        add_up(one.seconds for one in found),
        add_up(one.work for one in found),
        add_up(one.state_bytes for one in found).astype(np.int64),
        {key_hash: name for one in found for key_hash, name in one.names.items()},
        {unit: work for one in found for unit, work in one.remainder_work.items()},
        {unit: size for one in found for unit, size in one.remainder_bytes.items()},
        sum(one.variance for one in found),
        len(np.unique(places)) == len(hashes),
    )


def compute_key_loads(
    nodes: Iterable[NodeView], routing: Routing, stage: int, name: str | None = None
) -> StageKeyLoads:
    """Return the load of every measured key of a stage, and that of the others by task and node.

    Raises `KeysNotMeasured`, with the `name` of the stage, if there is no key to plan with; before the owners of all
    units have measured them, since a plan would take these nodes for idle; while nodes report intervals before and
    after keys moved: the work of those keys would be counted at both places, or at none; and while a key of the table
    is in no report, since its state would seem to be empty.
    """
    reporting = list(nodes)
    keys = collect_keys(reporting, routing, stage)
    late = {routing.owners(unit)[0] for unit in keys.unmeasured} | _find_outdated(reporting)
    if late or not len(keys.hashes) or not keys.is_table_reported:
        raise KeysNotMeasured(stage if name is None else name, sorted(late))
    owning = set(routing.assignment.owners)
    names = tuple(node for node in routing.assignment.nodes if node in owning)
    owners = np.array([names.index(owner) for owner in routing.assignment.owners], np.int32)
    remainder_work = _add_up_tasks(keys.remainder_work, len(owners))
    remainder_size = _add_up_tasks(keys.remainder_bytes, len(owners))
    tasks = keys.tasks
    return StageKeyLoads(
        stage,
        routing,
        names,
        KeyLoads(keys.hashes, owners[keys.home_tasks], owners[tasks], keys.work, keys.state_bytes),
        tasks,
        keys.are_guests,
        remainder_work,
        remainder_size,
        _add_up(owners, remainder_work, len(names)),
        _add_up(owners, remainder_size, len(names)),
        float(np.sqrt(keys.variance * len(names)) / keys.total_work) if keys.total_work else 0.0,
        len(getattr(routing.groupings[stage], "protected", ())),
        part_bytes=max(_list_part_bytes(reporting, stage), default=0.0),
    )


def _list_part_bytes(nodes: Iterable[NodeView], stage: int) -> Iterator[float]:
    for node in nodes:
        if node.heartbeat is not None and node.heartbeat.keys is not None:
            yield node.heartbeat.keys.part_bytes.get(stage, 0.0)


def _find_outdated(nodes: Iterable[NodeView]) -> set[str]:
    """Return the nodes whose last interval ended before keys moved, if that of others began after it."""
    epochs = {
        node.name: node.heartbeat.keys.groupings_epoch
        for node in nodes
        if node.heartbeat is not None and node.heartbeat.keys is not None
    }
    return {node for node, epoch in epochs.items() if epoch < max(epochs.values())}


def _add_up(places: npt.NDArray[Any], amounts: npt.NDArray[Any], count: int) -> Floats:
    """Return the sum of the amounts of each place."""
    sums: Floats = np.bincount(places, amounts, count).astype(np.float64, copy=False)
    return sums


def _add_up_tasks(by_unit: Mapping[UnitId, float], tasks: int) -> Floats:
    """Return the sum of a task and its guests, by task."""
    sums = np.zeros(tasks)
    for unit, amount in by_unit.items():
        sums[unit.task] += amount
    return sums


@dataclass(frozen=True)
class _NodeKeys:
    """The keys that one node reports of the units that it owns."""

    hashes: Integers
    rows: Integers
    seconds: Floats
    work: Floats
    state_bytes: Integers
    names: Mapping[int, str]
    remainder_work: Mapping[UnitId, float]
    remainder_bytes: Mapping[UnitId, float]
    variance: float


def _read_report(report: KeyStatistics, node: str, routing: Routing, stage: int, length: float) -> _NodeKeys:
    """Return what the node reports of its units of a stage, with work per unit of the interval's length."""
    units = {
        place: found
        for place, found in enumerate(report.units)
        if found.unit.stage == stage and routing.owners(found.unit)[0] == node
    }
    chosen = np.isin(report.columns.units, list(units))
    keys = report.columns.select(chosen)
    intervals = np.array([length * _share_of_interval(found, report) for found in report.units])
    spent = _add_up(keys.units, keys.seconds, len(report.units)).tolist()
    sizes = _add_up(keys.units, keys.state_bytes, len(report.units)).tolist()
    counted = _add_up(keys.units, keys.rows, len(report.units)).tolist()
    lengths = intervals.tolist()
    work = keys.seconds / intervals[keys.units] if len(keys.units) else keys.seconds
    remainder = {place: _subtract(found.seconds, spent[place]) / lengths[place] for place, found in units.items()}
    # Work w of r independent rows has the variance w^2 / r; of a key only one row in `stride` was counted.
    variance = report.stride * float(np.sum(work**2 / np.maximum(keys.rows, 1)))
    variance += sum(rest**2 / max(units[place].rows - counted[place], 1) for place, rest in remainder.items())
    return _NodeKeys(
        keys.hashes,
        keys.rows,
        keys.seconds,
        work,
        keys.state_bytes,
        {int(report.columns.hashes[place]): name for place, name in report.names.items() if chosen[place]},
        {found.unit: remainder[place] for place, found in units.items()},
        {found.unit: max(0.0, found.state_bytes - sizes[place]) for place, found in units.items()},
        variance,
    )


def _subtract(total: float, part: float) -> float:
    """Return what is left, without what is left only by rounding."""
    left = total - part
    return left if left > _ROUNDING * total else 0.0


def _share_of_interval(found: UnitKeys, report: KeyStatistics) -> float:
    return max(found.interval_seconds / report.seconds if report.seconds else 1.0, _LEAST_SHARE)
