"""The sliding window: every text is emitted twice, with +1 when it arrives and with -1 when it leaves."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import InvalidSetting
from elastic.operators import Context, Operator, State, Timer
from examples.frequent_patterns.mining import Mining

TEXT = "text"
_LEAVES = "leaves"
_TEXTS = "texts"


class SlidingWindow(Operator):
    """Holds the texts of the window; takes a column `text`, emits their words with the change of their count.

    Senders reduce a text to its words in canonical form, and combine texts of the same words into one row with a count.
    A task's state is a table of the window, so a batch costs O(texts of the window). Texts leave at the end of a batch,
    after the arrivals: a timer that is always due calls every task with texts, even without new rows.

    Time is that of the batch, from the log; with a column `time` it is the watermark, and a late text leaves as it
    arrives. So in a replay the same texts leave in the same batches.
    """

    next_schema = "words string, texts int"

    def __init__(self, mining: Mining, time: str | None = None) -> None:
        if time is not None and mining.span.in_batches:
            raise InvalidSetting("window", str(mining.span), "with a time column the window must be a duration")
        self._mining = mining
        self._time = time
        self.version = mining.version  # type: ignore[misc]

    def combine(self, rows: pa.Table) -> pa.Table:
        columns = {TEXT: self._mining.vocabulary.to_canonical(rows[TEXT])}
        if self._time is not None:
            columns[self._time] = rows[self._time].combine_chunks()
        worded = pa.table(columns).filter(pc.is_valid(pc.field(TEXT)))
        counted = worded.group_by(list(columns), use_threads=False).aggregate([([], "count_all")])
        return counted.rename_columns([*columns, _TEXTS])

    def initial_state(self) -> pa.Table:
        return pa.schema([(TEXT, pa.string()), (_TEXTS, pa.int32()), (_LEAVES, pa.int64())]).empty_table()

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Iterator[pa.Table]:
        arrived = pa.table(
            {
                TEXT: rows[TEXT],
                _TEXTS: rows[_TEXTS].cast(pa.int32()),
                _LEAVES: self._leave_times(rows, context),
            }
        )
        state.value = pa.concat_tables([state.value, arrived])
        self._schedule_check(context)
        yield _count(arrived, +1)

    def handle_timer(self, _: Timer, state: State, context: Context) -> Iterator[pa.Table]:
        now = self._now(context)
        stays = pc.greater(state.value[_LEAVES], now) if now is not None else None
        if stays is not None:
            yield _count(state.value.filter(pc.invert(stays)), -1)
            state.value = state.value.filter(stays).combine_chunks()
        if state.value.num_rows:
            self._schedule_check(context)

    def _leave_times(self, rows: pa.Table, context: Context) -> Any:
        """Return when each text leaves, on the clock of `_now`."""
        span = self._mining.span
        if self._time is not None:
            return pc.add(rows[self._time].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()), span.amount)
        arrives = context.batch if span.in_batches else context.timestamp_ms
        return pa.array(np.full(rows.num_rows, arrives + span.amount))

    def _now(self, context: Context) -> int | None:
        if self._time is not None:
            return context.watermark_ms
        return context.batch if self._mining.span.in_batches else context.timestamp_ms

    def _schedule_check(self, context: Context) -> None:
        """Set a timer for the end of this batch, or of the next one if the timers of this one are running."""
        context.set_timer(0, "processing", "leave")


def _count(texts: pa.Table, sign: int) -> pa.Table:
    return pa.table({"words": texts[TEXT], _TEXTS: pc.multiply(texts[_TEXTS], pa.scalar(sign, pa.int32()))})
