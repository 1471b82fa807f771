"""Measures the time of rows by cost key: calls an operator for groups of them, as long as the calls cost little.

The sender says how many rows are worth a call of their own, in the metadata of the rows, and the log keeps that: a
replay divides the rows in the same way, so that the operator sees the same calls and the same random numbers.
"""

from collections.abc import Callable, Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa

from elastic import threads
from elastic.operators.calls import CostTimes, OperatorCaller, UnitStep
from elastic.operators.context import Moment
from elastic.operators.timers import Timer
from elastic.routing.hashing import hash_rows

_GROUP_ROWS = b"elastic.group_rows"
_MOST_ROWS = 1 << 14  # of a step of a unit that are divided: enough to learn from
_CHOICE = 0x504F5347  # a seed of its own: operators draw from the one of the moment


def mark_group_rows(rows: pa.Table, group_rows: int) -> pa.Table:
    """Return the rows with the number of them that are worth a call of their own; 0: the rows are not measured."""
    return rows.replace_schema_metadata({_GROUP_ROWS: str(group_rows)}) if group_rows else rows


class MeasuredCaller:
    """Calls an operator for rows of one cost key at a time, and notes the seconds of each call.

    Of n rows, about n / `group_rows` groups get a call of their own: all, or some that are drawn by their rows. The
    other rows share one call, of which nothing is noted. Without a cost key all rows are one group. Deterministic.
    """

    def __init__(
        self, caller: OperatorCaller, cost_key: tuple[str, ...], clock: Callable[[], float] = threads.monotonic
    ) -> None:
        self._caller = caller
        self._cost_key = cost_key
        self._clock = clock

    def rows(self, step: UnitStep, rows: pa.Table) -> None:
        group_rows = _read_group_rows(rows)
        rows = rows.replace_schema_metadata(None)
        if not group_rows:
            self._caller.rows(step, rows)
            return
        measured: list[tuple[int, int, float]] = []
        for key_hash, group in self._divide(step.moment, rows, group_rows):
            began = self._clock()
            self._caller.rows(step, group)
            if key_hash is not None:
                measured.append((key_hash, group.num_rows, self._clock() - began))
            step.call += 1
        if measured:
            hashes, counts, seconds = zip(*measured, strict=True)
            step.cost_times = CostTimes(
                np.array(hashes, np.int64), np.array(counts, np.int64), np.array(seconds, np.float64)
            )

    def timers(self, step: UnitStep, due: list[Timer]) -> None:
        self._caller.timers(step, due)

    def _divide(self, moment: Moment, rows: pa.Table, group_rows: int) -> Iterator[tuple[int | None, pa.Table]]:
        """Yield groups of one cost key with its hash, then all other rows without one."""
        if not self._cost_key:
            yield 0, rows
            return
        calls = int(min(rows.num_rows, _MOST_ROWS) / group_rows + _draw(moment))
        if not calls:
            yield None, rows
            return
        divided = rows.slice(0, _MOST_ROWS)
        chance = np.random.default_rng([_CHOICE, moment.unit.number, moment.batch, moment.round])
        hashes, groups, counts = np.unique(hash_rows(divided, self._cost_key), return_inverse=True, return_counts=True)
        chosen = np.arange(len(hashes))
        if calls < len(hashes):
            chosen = np.sort(chance.choice(len(hashes), calls, replace=False, p=counts / counts.sum()))
        place = np.full(len(hashes), len(chosen))
        place[chosen] = np.arange(len(chosen))
        if len(hashes) > 1:
            divided = divided.take(pa.array(np.argsort(place[groups], kind="stable")))
        start = 0
        for key_hash, count in zip(hashes[chosen].tolist(), counts[chosen].tolist(), strict=True):
            yield key_hash, divided.slice(start, count)
            start += count
        rest = pa.concat_tables([divided.slice(start), rows.slice(_MOST_ROWS)])
        if rest.num_rows:
            yield None, rest


def _draw(moment: Moment) -> float:
    """Return a number between 0 and 1 that is the same in a replay; costs a microsecond, a generator twenty."""
    return crc32(f"{moment.unit.number} {moment.batch} {moment.round}".encode()) / 2**32


def _read_group_rows(rows: pa.Table) -> int:
    text = (rows.schema.metadata or {}).get(_GROUP_ROWS, b"0")
    return int(text) if text.isdigit() else 0
