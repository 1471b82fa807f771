"""Time to live: state of a key is forgotten when the key has had no update for some time.

Time is the processing time of batches, which is data: a replay forgets the same keys at the same row. A key expires
in the batch whose time is `ttl` or more after that of its last update; rows of that batch see a new key. What expires
takes no memory after another quarter of that time.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidSetting
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.kernels import Words

TTL_TIMER = "elastic.ttl"  # of a key of a `KeyedOperator`; deletes its state without a call
SWEEP_TIMER = "elastic.sweep"

_SWEEPS = 4  # per time to live: more free memory sooner, and cost O(keys) each


def parse_ttl_ms(ttl: str | None) -> int | None:
    """Return a time to live in milliseconds; None for None. Raises `InvalidSetting`."""
    if ttl is None:
        return None
    parsed = parse_duration_ms(ttl, "ttl")
    if parsed < 1:
        raise InvalidSetting("ttl", ttl, "it must be at least a millisecond")
    return parsed


def schedule_sweep(context: Context, expires_ms: int, ttl_ms: int) -> None:
    """Set the timer at which state is to be swept for what expires at this time, a few times per `ttl_ms` at most."""
    at_ms = max(expires_ms, context.timestamp_ms + ttl_ms // _SWEEPS, context.timestamp_ms + 1)
    context.set_timer_by(at_ms, "processing", SWEEP_TIMER)


class Expiry:
    """The time to live of keyed columns: a column with the time at which each row expires, and a timer to sweep."""

    COLUMN: ClassVar[str] = "elastic.expires"

    def __init__(self, ttl_ms: int) -> None:
        self.ttl_ms = ttl_ms

    def is_expired(self, state: KeyedColumns, numbers: Words, context: Context) -> NDArray[np.bool_]:
        """Return which of these rows have expired; a row that `renew` has not seen yet is as good as expired."""
        return state.column(self.COLUMN)[numbers] <= context.timestamp_ms

    def renew(self, state: KeyedColumns, numbers: Words, context: Context) -> None:
        """Give rows another time to live, and see to it that they are swept."""
        state.column(self.COLUMN)[numbers] = context.timestamp_ms + self.ttl_ms
        schedule_sweep(context, context.timestamp_ms + self.ttl_ms, self.ttl_ms)

    def sweep(self, state: KeyedColumns, context: Context) -> None:
        """Drop the rows that have expired; called when the timer fires."""
        expires = state.column(self.COLUMN)
        is_live = expires > context.timestamp_ms
        if not is_live.all():
            state.keep(is_live)
        if len(state):
            schedule_sweep(context, int(state.column(self.COLUMN).min()), self.ttl_ms)
