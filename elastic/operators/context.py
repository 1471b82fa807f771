"""What an operator may know besides its rows and its state; all of it is the same when a batch is replayed."""

from typing import Any

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.moment import Moment
from elastic.operators.timers import KINDS, Timer, TimerKind, Timers
from elastic.operators.times import until


class Context:
    """The batch, its time, its randomness, and the timers.

    Timers take effect when the call returns without an error; a timer that is due already goes off after the rows of
    the batch, one that a timer sets in the next batch.
    """

    def __init__(self, moment: Moment, *, timers_allowed: bool = True, for_timers: bool = False) -> None:
        self._moment = moment
        self._timers_allowed = timers_allowed
        self._changes: list[Timer | tuple[str, Any, str]] = []
        self._random: np.random.Generator | None = None
        self.key: Any = None  # the key of this call, for keyed operators
        self.watermark_ms = moment.next_watermark_ms if for_timers else moment.watermark_ms

    @property
    def task(self) -> int:
        return self._moment.task

    @property
    def batch(self) -> int:
        return self._moment.batch

    @property
    def round(self) -> int:
        """0 for rows from the source, r + 1 for rows that operators emitted in round r of the same batch."""
        return self._moment.round

    @property
    def timestamp_ms(self) -> int:
        """The batch's time: what now is, in this batch."""
        return self._moment.timestamp_ms

    @property
    def random(self) -> np.random.Generator:
        """Numbers that are the same again when the batch is replayed."""
        if self._random is None:
            self._random = np.random.default_rng([self._moment.slot, self._moment.batch, self._moment.round])
        return self._random

    def set_timer(self, at_ms: int, kind: TimerKind = "event", name: str = "", *, key: Any = None) -> None:
        """Set the timer of this kind and name, or move it. `key` is for operators without keys of their own."""
        self._check(kind)
        self._changes.append(Timer(int(at_ms), kind, name, self.key if key is None else key))

    def delete_timer(self, kind: TimerKind = "event", name: str = "", *, key: Any = None) -> None:
        """Delete the timer of this kind and name, if it is set."""
        self._check(kind)
        self._changes.append((kind, self.key if key is None else key, name))

    def late(self, rows: Any, column: str) -> Any:
        """Which rows are no later than the watermark; none without one, and never a null.

        A mask of the kind that the rows can be filtered with: an Arrow array for Arrow, a NumPy array for pandas, a
        list for a list of dicts. The column holds timestamps, or whole numbers that are milliseconds.
        """
        arrow = isinstance(rows, pa.Table | pa.RecordBatch)
        if arrow:
            times = rows.column(column)
        else:
            values = [row[column] for row in rows] if isinstance(rows, list) else rows[column]
            times = pa.array(values, from_pandas=True)
        mask = until(times, self.watermark_ms)
        if arrow:
            return pa.array(mask)
        return mask.tolist() if isinstance(rows, list) else mask

    def apply_timers(self, timers: Timers) -> None:
        """What the engine calls when the operator's call went well."""
        for change in self._changes:
            if isinstance(change, Timer):
                timers.set(change)
            else:
                timers.delete(*change)
        self._changes.clear()

    def forget_timers(self) -> None:
        """What the engine calls when the operator's call failed."""
        self._changes.clear()

    def _check(self, kind: str) -> None:
        if not self._timers_allowed:
            raise InvalidJob("an operator without a state sets no timers. Make it an Operator or a KeyedOperator.")
        if kind not in KINDS:
            raise InvalidJob(f"there are no {kind!r} timers. Use 'event' or 'processing'.")
