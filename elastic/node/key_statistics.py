"""The statistics of the keys on a node: counted in the running interval, reported for the last complete one."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastic import threads
from elastic.core.ids import Batch, UnitId
from elastic.core.key_statistics import NO_KEYS, KeyColumns, KeyStatistics, UnitKeys
from elastic.core.pipeline import select_counted_stages
from elastic.core.unit_host import UnitHost
from elastic.node.key_collector import KeyCollector
from elastic.node.unit_keys import UnitKeyCounter
from elastic.operators.calls import UnitState
from elastic.operators.key_sizes import AS_ESTIMATED, PartSizes, measure_keys, sample_sizes
from elastic.operators.keyed import KeyedOperator
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.results import Description
from elastic.routing import Groupings, TableGrouping
from elastic.settings import Settings

Hashes = npt.NDArray[np.int64]

_NAMED_KEYS = 200  # of a stage, the heaviest: more than a person reads
_NAME_LENGTH = 100
_NO_HASHES: Hashes = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Unit:
    """A unit at the end of an interval: its place in the report, its keys, and which of them a table names."""

    place: int
    id: UnitId
    counter: UnitKeyCounter
    state: UnitState
    state_bytes: int
    hashes: Hashes  # counted keys first, then keys of the table that had no rows
    rows: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    in_table: npt.NDArray[np.bool_]
    active: int


class NodeKeyStatistics:
    """Counts the rows of each step by key, and makes a report when an interval is over.

    Only the working thread calls it. A report has the heaviest keys of each stage, all keys of its key table that live
    here, and totals of every unit. Steps that are replayed are not counted: they are no load of the stream. Where a
    unit leaves the node, its counts go. When keys move, the interval begins anew: a key that is counted in one interval
    at its old place and at its new place would be counted twice, since the intervals of nodes differ.
    """

    def __init__(
        self,
        settings: Settings,
        pipeline: Description,
        runners: Sequence[StageRunner],
        clock: Callable[[], float] = threads.monotonic,
    ) -> None:
        self._settings = settings
        self._runners = runners
        self._stages = select_counted_stages(pipeline, settings.key_statistics)
        self._collectors = {stage: KeyCollector(runners[stage].key) for stage in self._stages}
        self._clock = clock
        self._began = clock()
        self._interval = 0
        self._first_batch: Batch | None = None  # begun when the interval began; None in the first one
        self._known_batch: Batch | None = None  # begun at the first measurement of a unit
        self._groupings_epoch: int | None = None  # of the interval; None before the first measurement
        self._measured_at = self._began
        self._rows = 0  # since the last measurement
        self._rate = 0.0  # the highest rows per second of late
        self._stride = 1  # the largest of the running interval
        self._units: dict[UnitId, UnitKeyCounter] = {}
        self._heads: Mapping[UnitId, Hashes] = {}  # the heaviest keys of the last report
        self._keys: dict[int, dict[int, Any]] = {stage: {} for stage in self._stages}  # keys of the head, by hash
        self.report: KeyStatistics | None = None

    def observe_step(self, unit: UnitId, slices: Sequence[pa.Table], output: StepOutput, seconds: float) -> None:
        """Count the rows of a step of a unit; see `UnitHost.observe_step`. Keys that move are no rows."""
        if unit.stage in self._stages and (output.rows or not slices):
            counter = self._counter(unit, self._clock())
            counter.add_step(output.rows, seconds)
            self._rows += output.rows
            self._collectors[unit.stage].add(unit, counter, slices, output.key_times)

    def measure(self, host: UnitHost) -> None:
        """Count what was collected, and make a report if the interval is over."""
        if not self._stages:
            return
        now = self._clock()
        states = {unit: (state, size) for unit, state, size in host.states() if unit.stage in self._stages}
        for unit in [unit for unit in self._units if unit not in states]:
            del self._units[unit]
        for unit in states:
            self._counter(unit, now)  # from now on, even if it has no rows
        if states and self._known_batch is None:
            self._known_batch = host.newest_begun_batch()
        for collector in self._collectors.values():
            collector.count()
        self._choose_stride(now)
        if self._groupings_epoch not in (None, host.groupings_epoch):
            self._begin_interval(now, host.newest_begun_batch())
        self._groupings_epoch = host.groupings_epoch
        if now - self._began < self._settings.key_interval_seconds:
            return
        if self._is_idle(host.newest_begun_batch()):
            self._restart_interval(now)  # an idle stream keeps what was measured last
        else:
            groupings = None if host.routing is None else host.routing.groupings
            self._end_interval(now, states, groupings, host.newest_begun_batch())

    def _is_idle(self, batch: Batch) -> bool:
        """Whether no batch has begun in the interval: then nothing says how busy the units are."""
        if self._first_batch is not None:
            return batch == self._first_batch
        return batch == self._known_batch and not any(counter.rows for counter in self._units.values())

    def _restart_interval(self, now: float) -> None:
        self._began = now
        for counter in self._units.values():
            counter.began = now

    def _counter(self, unit: UnitId, now: float) -> UnitKeyCounter:
        counter = self._units.get(unit)
        if counter is None:
            counter = self._units[unit] = UnitKeyCounter(self._limit(1), now)
        return counter

    def _limit(self, more: int = 0) -> int:
        """Return how many keys each unit may count."""
        return max(1, self._settings.key_statistics_counters // (len(self._units) + more))

    def _choose_stride(self, now: float) -> None:
        """Count one of 2^n rows, with the least n that keeps the counted rows per second within the settings.

        Batches come in bursts, so the highest rate counts; it is halved in an interval.
        """
        elapsed = now - self._measured_at
        if elapsed <= 0:
            return
        remembered = self._rate * 0.5 ** (elapsed / self._settings.key_interval_seconds)
        self._rate = max(self._rows / elapsed, remembered)
        self._measured_at, self._rows = now, 0
        ratio = self._rate / self._settings.key_statistics_rows_per_second
        for collector in self._collectors.values():
            collector.stride = 1 << max(0, math.ceil(math.log2(max(ratio, 1.0))))

    def _end_interval(
        self,
        now: float,
        states: Mapping[UnitId, tuple[UnitState, int]],
        groupings: Groupings | None,
        batch: Batch,
    ) -> None:
        least = {stage: self._find_least_seconds(stage) for stage in self._stages}
        units = [
            _collect_unit(
                place, unit, self._units[unit], *states[unit], _table_keys(unit, groupings), least[unit.stage]
            )
            for place, unit in enumerate(sorted(self._units))
        ]
        heads, names, part_bytes = [NO_KEYS], dict[int, str](), dict[int, float]()
        for stage in self._stages:
            head, keys, part_bytes[stage] = self._select_head([one for one in units if one.id.stage == stage], stage)
            first = sum(len(one.hashes) for one in heads)
            names |= {first + place: _format_key(key) for place, key in keys.items()}
            heads.append(head)
        columns = KeyColumns.of(*map(np.concatenate, zip(*heads, strict=True)))
        totals = tuple(_add_up(unit, now) for unit in units)
        batches = 0 if self._first_batch is None else max(0, batch - self._first_batch)
        seconds = now - self._began
        epoch = self._groupings_epoch or 0
        self.report = KeyStatistics.of(
            self._interval, seconds, totals, columns, names, batches, self._stride, epoch, part_bytes
        )
        self._interval += 1
        self._heads = {unit.id: columns.hashes[columns.units == unit.place] for unit in units}
        self._begin_interval(now, batch)

    def _begin_interval(self, now: float, batch: Batch) -> None:
        """Drop all counts. The heaviest keys of the last report are always counted exactly."""
        self._began, self._first_batch = now, batch
        self._stride = max(collector.stride for collector in self._collectors.values())
        for unit, counter in self._units.items():
            counter.begin_interval(now, self._limit(), self._heads.get(unit, _NO_HASHES))

    def _find_least_seconds(self, stage: int) -> float:
        """Return seconds that no key of the head is below: with many keys, most need not be looked at."""
        weights = [counter.weigh_keys() for unit, counter in self._units.items() if unit.stage == stage]
        measured = [weight for weight in weights if weight is not None]
        if len(measured) < len(weights) or not weights:
            return 0.0
        seconds, keys = (np.concatenate(column) for column in zip(*measured, strict=True))
        order = np.argsort(-seconds, kind="stable")
        enough = int(np.searchsorted(np.cumsum(keys[order]), self._settings.key_statistics_head))
        return float(seconds[order[enough]]) if enough < len(order) else 0.0

    def _select_head(self, units: Sequence[_Unit], stage: int) -> tuple[KeyColumns, Mapping[int, Any], float]:
        """Return the heaviest keys of a stage and those of its table, heaviest first; the keys that are known; and the
        bytes of a part of such keys besides their states.
        """
        if not units:
            return NO_KEYS, {}, 0.0
        seconds = np.concatenate([unit.seconds for unit in units])
        in_table = np.concatenate([unit.in_table for unit in units])
        places = np.repeat([unit.place for unit in units], [len(unit.hashes) for unit in units])
        chosen = _choose_heaviest(seconds, in_table, self._settings.key_statistics_head)
        hashes = np.concatenate([unit.hashes for unit in units])[chosen]
        rows = np.concatenate([unit.rows for unit in units])[chosen]
        keys = self._find_keys(hashes[:_NAMED_KEYS].tolist(), stage)
        sizes = np.zeros(len(chosen), np.int64)
        for unit in units:
            mine = places[chosen] == unit.place
            operator, state = self._runners[stage].operator, unit.state.value
            sizes[mine] = measure_keys(operator, state, unit.state_bytes, hashes[mine], keys, unit.active)
        stored = self._sample_sizes(units, stage, keys.values())
        known = {place: keys[one] for place, one in enumerate(hashes[:_NAMED_KEYS].tolist()) if one in keys}
        columns = KeyColumns.of(hashes, places[chosen], rows, seconds[chosen], np.ceil(sizes * stored.scale))
        return columns, known, stored.part

    def _sample_sizes(self, units: Sequence[_Unit], stage: int, keys: Iterable[Any]) -> PartSizes:
        """Return what the states of these keys take where they move, if a state is by key."""
        runner = self._runners[stage]
        if not isinstance(runner.operator, KeyedOperator):
            return AS_ESTIMATED
        states = [unit.state.value for unit in units]
        return sample_sizes(runner, {key: state[key] for key in keys for state in states if key in state})

    def _find_keys(self, hashes: Sequence[int], stage: int) -> Mapping[int, Any]:
        """Return the keys of these hashes that are known, and forget all others."""
        before = self._keys[stage]
        keys = {one: before[one] for one in hashes if one in before}
        unknown = [one for one in hashes if one not in keys]
        keys.update(self._collectors[stage].find_keys(unknown))
        self._keys[stage] = keys
        return keys


def _table_keys(unit: UnitId, groupings: Groupings | None) -> Hashes:
    """Return the hashes of the keys that the table of a stage places in a unit."""
    grouping = None if groupings is None else groupings[unit.stage]
    if not unit.guests or not isinstance(grouping, TableGrouping):
        return _NO_HASHES
    hashes: Hashes = grouping.table.hashes[grouping.table.tasks == unit.task]
    return hashes


def _collect_unit(
    place: int,
    unit: UnitId,
    counter: UnitKeyCounter,
    state: UnitState,
    state_bytes: int,
    table_keys: Hashes,
    least_seconds: float,
) -> _Unit:
    counts = counter.counts(0.0 if unit.guests else least_seconds)
    idle = np.setdiff1d(table_keys, counts.hashes)
    in_table = np.isin(counts.hashes, table_keys) if len(table_keys) else np.zeros(len(counts.hashes), np.bool_)
    return _Unit(
        place,
        unit,
        counter,
        state,
        state_bytes,
        np.concatenate([counts.hashes, idle]),
        np.concatenate([counts.rows, np.zeros(len(idle), np.int64)]),
        np.concatenate([counter.attribute_seconds(counts), np.zeros(len(idle))]),
        np.concatenate([in_table, np.ones(len(idle), np.bool_)]),
        counter.keys,
    )


def _choose_heaviest(
    seconds: npt.NDArray[np.float64], in_table: npt.NDArray[np.bool_], head: int
) -> npt.NDArray[np.int64]:
    """Return the places of the `head` heaviest keys and of all in the table, heaviest first. O(keys)."""
    chosen = np.arange(len(seconds)) if len(seconds) <= head else np.argpartition(-seconds, head)[:head]
    chosen = np.union1d(chosen, np.flatnonzero(in_table))
    ordered: npt.NDArray[np.int64] = chosen[np.argsort(-seconds[chosen], kind="stable")]
    return ordered


def _add_up(unit: _Unit, now: float) -> UnitKeys:
    counter = unit.counter
    return UnitKeys(
        unit.id, now - counter.began, unit.active, counter.rows, counter.seconds, unit.state_bytes, counter.error_rows
    )


def _format_key(key: Any) -> str:
    text = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"
