"""The context of an operator besides its rows and its state; a replay of the batch sees the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from elastic.errors import InvalidJob
from elastic.operators.event_times import mask_until
from elastic.operators.timers import KINDS, Timer, TimerKind, Timers
from storage.state import UnitId

RESERVED = "elastic."  # begins the names of timers of ready-made operators, and of those that end the life of state


@dataclass(frozen=True, slots=True)
class Moment:
    """One round of one batch of one unit, with the clocks of its stage.

    `watermark_ms` applies to the rows, `next_watermark_ms` to the timers; None without a watermark. The stage has got
    all rows up to the latter that are not late; behind other stages it is the same as the former, since rows of the
    batch come after the timers.
    """

    unit: UnitId
    batch: int
    round: int
    timestamp_ms: int
    watermark_ms: int | None = None
    next_watermark_ms: int | None = None

    @property
    def task(self) -> int:
        return self.unit.task

    @property
    def clocks(self) -> dict[str, int | None]:
        """The time of each kind of timer after the rows are processed."""
        return {"event": self.next_watermark_ms, "processing": self.timestamp_ms}


@dataclass(frozen=True, slots=True)
class _AtLatest:
    """A timer to set unless it is set for an earlier time."""

    timer: Timer


class Context:
    """The batch, its time, its random numbers, and timers.

    Timers take effect if the call succeeds. A timer that is already due fires after the rows of the batch; one that a
    timer sets fires in the next batch.
    """

    def __init__(self, moment: Moment, *, timers_allowed: bool = True, for_timers: bool = False, call: int = 0) -> None:
        self._moment = moment
        self._call = call  # other calls of the same step get other random numbers
        self._timers_allowed = timers_allowed
        self._changes: list[Timer | _AtLatest | tuple[str, Any, str]] = []
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
        """The processing time of the batch."""
        return self._moment.timestamp_ms

    @property
    def random(self) -> np.random.Generator:
        """A random generator that yields the same numbers when the batch is replayed."""
        if self._random is None:
            seed = [self._moment.unit.number, self._moment.batch, self._moment.round]
            self._random = np.random.default_rng([*seed, self._call] if self._call else seed)
        return self._random

    def set_timer(self, at_ms: int, kind: TimerKind = "event", name: str = "", *, key: Any = None) -> None:
        """Set the timer of this kind and name, or move it. `key` is for operators without keys of their own."""
        self._check(kind, name)
        self._changes.append(Timer(int(at_ms), kind, name, self.key if key is None else key))

    def set_timer_by(self, at_ms: int, kind: TimerKind = "event", name: str = "", *, key: Any = None) -> None:
        """Set the timer of this kind and name, unless it is set for an earlier time already."""
        self._check(kind, name)
        self._changes.append(_AtLatest(Timer(int(at_ms), kind, name, self.key if key is None else key)))

    def delete_timer(self, kind: TimerKind = "event", name: str = "", *, key: Any = None) -> None:
        """Delete the timer of this kind and name, if it is set."""
        self._check(kind, name)
        self._changes.append((kind, self.key if key is None else key, name))

    def late(self, rows: Any, column: str) -> Any:
        """Return a mask of the late rows: those at or before the watermark; nulls are never late.

        The mask fits the rows: an Arrow array for Arrow, a NumPy array for pandas, a list for a list of dicts. The
        column holds timestamps, or integers in milliseconds.
        """
        arrow = isinstance(rows, pa.Table | pa.RecordBatch)
        if arrow:
            times = rows.column(column)
        else:
            values = [row[column] for row in rows] if isinstance(rows, list) else rows[column]
            times = pa.array(values, from_pandas=True)
        mask = mask_until(times, self.watermark_ms)
        if arrow:
            return pa.array(mask)
        return mask.tolist() if isinstance(rows, list) else mask

    def apply_timers(self, timers: Timers) -> None:
        """Apply the timer changes; the engine calls it when the operator's call succeeds."""
        for change in self._changes:
            if isinstance(change, Timer):
                timers.set(change)
            elif isinstance(change, _AtLatest):
                known = timers.get(change.timer.kind, change.timer.key, change.timer.name)
                if known is None or change.timer.at_ms < known:
                    timers.set(change.timer)
            else:
                timers.delete(*change)
        self._changes.clear()

    def discard_timers(self) -> None:
        """Discard the timer changes; the engine calls it when the operator's call fails."""
        self._changes.clear()

    def _check(self, kind: str, name: str) -> None:
        if not self._timers_allowed:
            raise InvalidJob("a stateless operator cannot set timers. Make it an Operator or a KeyedOperator.")
        if name.startswith(RESERVED) and self.key is not None:
            raise InvalidJob(f"timers whose names begin with {RESERVED!r} are the engine's. Rename {name!r}.")
        if kind not in KINDS:
            raise InvalidJob(f"unknown timer kind {kind!r}. Use 'event' or 'processing'.")
