"""Collects the rows of a stage and counts them by key, many at a time: few rows at a time would cost as much."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from elastic.core.ids import UnitId
from elastic.node.unit_keys import UnitKeyCounter
from elastic.operators.calls import KeyTimes
from elastic.operators.keys import to_python_keys
from elastic.routing.hashing import hash_keys
from elastic.routing.key_counter import choose_rows

Hashes = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]

_COLLECTED_ROWS = 1 << 18  # counted at a time; a heartbeat later at the latest
_LARGE_SLICE = 1 << 12  # rows: copying them all costs more than a call that copies some
_REMEMBERED_ROWS = 1 << 14  # of the latest, in which names of keys are looked up


class _Slice(NamedTuple):
    """Rows of a unit: their key columns, which share memory with the rows; with `times`, rows are grouped by key."""

    unit: UnitId
    counter: UnitKeyCounter
    columns: list[pa.Array | pa.ChunkedArray]
    rows: int
    times: KeyTimes | None

    def is_like(self, other: "_Slice") -> bool:
        """Whether both can be counted together: unless rows were logged before a column had its new type."""
        same_types = all(mine.type == theirs.type for mine, theirs in zip(self.columns, other.columns, strict=True))
        return same_types and (self.times is None) == (other.times is None)


class KeyCollector:
    """Counts rows of one stage, whose key has the columns of these names.

    Of every `stride` rows one is counted for all, chosen at random. So the rows of a key are known with a standard
    error of `sqrt((stride - 1) * rows)`; with a stride of 1 they are exact. Groups of rows that an operator was called
    with key by key are always counted.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.stride = 1
        self._columns = columns
        self._slices: list[_Slice] = []
        self._rows = 0
        self._random = Random(0)  # noqa: S311 - of no influence on results
        self._latest: tuple[Hashes, list[pa.Array]] | None = None
        self._is_latest_due = True

    def add(self, unit: UnitId, counter: UnitKeyCounter, slices: Sequence[pa.Table], times: KeyTimes | None) -> None:
        """Add the rows of a step of a unit, which the operator got at once, or key by key."""
        for rows in slices if times is None else [times.rows]:
            if rows.num_rows:
                columns = [rows.column(name) for name in self._columns]
                self._add(_Slice(unit, counter, columns, rows.num_rows, times))

    def count(self) -> None:
        """Count the rows that were collected, and release them; called regularly, so that none waits for long."""
        if self._slices:
            self._count()
        self._is_latest_due = True

    def find_keys(self, hashes: Iterable[int]) -> Mapping[int, Any]:
        """Return the keys that have these hashes, in the form that operators use, if the latest rows have them."""
        if self._latest is None:
            return {}
        known, columns = self._latest
        places = np.flatnonzero(np.isin(known, np.array(list(hashes), np.int64)))
        found, firsts = np.unique(known[places], return_index=True)
        indices = pa.array(places[firsts])
        return dict(zip(found.tolist(), to_python_keys([column.take(indices) for column in columns]), strict=True))

    def _count(self) -> None:
        slices = sorted(self._slices, key=lambda one: one.unit)
        self._slices, self._rows = [], 0
        chosen, amounts = self._choose(slices)
        columns = _join_columns(slices) if chosen is None else _take_rows(slices, chosen)
        hashes = hash_keys(columns)
        counters, bounds = _find_bounds(slices, chosen)
        for counter, (start, stop) in zip(counters, pairwise(bounds), strict=True):
            if amounts is None:
                counter.count(hashes[start:stop], self.stride)
            else:
                counter.count_groups(hashes[start:stop], amounts[start:stop])
        if self._is_latest_due:
            self._remember(hashes, columns)

    def _add(self, more: _Slice) -> None:
        if self._slices and not more.is_like(self._slices[0]):
            self._count()
        self._slices.append(more)
        self._rows += more.rows
        if self._rows >= _COLLECTED_ROWS:
            self._count()

    def _choose(self, slices: Sequence[_Slice]) -> tuple[Places | None, npt.NDArray[np.int64] | None]:
        """Return the rows to count, None for all; and how many rows and nanoseconds each stands for, if measured."""
        times = [one.times for one in slices if one.times is not None]
        if times:
            return _add_up(times)
        if self.stride == 1:
            return None, None
        return choose_rows(sum(one.rows for one in slices), self.stride, self._random.getrandbits(63) | 1), None

    def _remember(self, hashes: Hashes, columns: list[pa.Array]) -> None:
        """Copy some rows, evenly over all units, so that nothing else of their batches stays in memory."""
        step = max(1, -(-len(hashes) // _REMEMBERED_ROWS))
        indices = pa.array(np.arange(0, len(hashes), step))
        self._latest = hashes[::step].copy(), [column.take(indices) for column in columns]
        self._is_latest_due = False


def _find_bounds(slices: Sequence[_Slice], chosen: Places | None) -> tuple[list[UnitKeyCounter], Places]:
    """Return the counters of the units, and where the rows to count of each begin and end."""
    counters, rows = [], [0]
    for _, of_unit in groupby(slices, key=lambda one: one.unit):
        mine = list(of_unit)
        counters.append(mine[-1].counter)
        rows.append(rows[-1] + sum(one.rows for one in mine))
    return counters, np.array(rows) if chosen is None else np.searchsorted(chosen, rows)


def _add_up(times: Iterable[KeyTimes]) -> tuple[Places, npt.NDArray[np.int64]]:
    """Return where each key begins in the rows of all of them, with its number of rows and its nanoseconds."""
    firsts, amounts, rows = [], [], 0
    for one in times:
        offsets = np.asarray(one.offsets, np.int64)
        firsts.append(offsets[:-1] + rows)
        amounts.append(np.stack([np.diff(offsets), np.diff(np.asarray(one.nanoseconds, np.int64))], axis=1))
        rows += int(offsets[-1])
    return np.concatenate(firsts), np.concatenate(amounts)


def _take_rows(slices: Sequence[_Slice], chosen: Places) -> list[pa.Array]:
    """Return the key columns of these rows of all slices; joining small slices first is cheaper."""
    ends = np.cumsum([one.rows for one in slices])
    if ends[-1] < len(slices) * _LARGE_SLICE:
        indices = pa.array(chosen)
        return [column.take(indices) for column in _join_columns(slices)]
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    taken = [
        [column.take(pa.array(rows - (end - one.rows))) for column in one.columns]
        for one, rows, end in zip(slices, parts, ends, strict=True)
    ]
    return [_join(columns) for columns in zip(*taken, strict=True)]


def _join_columns(slices: Sequence[_Slice]) -> list[pa.Array]:
    return [_join(columns) for columns in zip(*(one.columns for one in slices), strict=True)]


def _join(columns: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
    chunks = [
        chunk for column in columns for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
