"""Operators that together use every feature of operators, and scenarios to run them through."""

from collections.abc import Iterator
from typing import Any, ClassVar

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastic.operators import (
    Context,
    CountByKey,
    KeyedColumns,
    KeyedOperator,
    Operator,
    Stage,
    State,
    Timer,
    ToNext,
    ToSelf,
    ToSink,
    ValueState,
    stateless,
)

INPUT = pa.schema([("key", pa.string()), ("n", pa.int64())])


class Sessions(KeyedOperator):
    """Collects the numbers of a key until it has been silent for two seconds; a mutable state, and moved timers."""

    output_schema = "key string, total long, rows int"

    def initial_state(self) -> list[int]:
        return []

    def handle_key(self, _key: Any, rows: Any, state: ValueState, context: Context) -> Iterator[Any]:
        seen = state.get()
        seen.extend(row["n"] for row in rows)
        state.update(seen)
        context.set_timer(context.timestamp_ms + 2_000, "processing", "silence")
        yield from ()

    def handle_expired(self, key: Any, timer: Timer, state: ValueState, context: Context) -> Iterator[Any]:
        assert timer.at_ms <= context.timestamp_ms
        yield {"key": key, "total": sum(state.get()), "rows": len(state.get())}
        state.clear()


class Windows(Operator):
    """Sums numbers in windows of ten milliseconds of event time (`n` itself), given out when the watermark passes."""

    output_schema = "window_end long, total long"
    input_format: ClassVar[str] = "pandas"

    def initial_state(self) -> dict[int, int]:
        return {}

    def handle_batch(self, rows: Any, state: State, context: Context) -> None:
        for number in rows[~context.late(rows, "n")]["n"].tolist():
            end = number - number % 10 + 10
            state.value[end] = state.value.get(end, 0) + number
            context.set_timer(end, "event", key=end)

    def handle_timer(self, timer: Timer, state: State, _context: Context) -> list[tuple[int, int]]:
        return [(timer.key, state.value.pop(timer.key))]


class Halving(Operator):
    """Sends half of a number back to itself until it is 1: rounds, and a state that changes in each of them."""

    output_schema = "key string, steps long"
    emits: ClassVar[frozenset[str]] = frozenset({"self"})

    def initial_state(self) -> KeyedColumns:
        return KeyedColumns("key string", {"steps": "int64"})

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Iterator[Any]:
        steps: KeyedColumns = state.value
        touched = steps.count("steps", steps.rows_for(rows))
        numbers = rows["n"].combine_chunks().to_numpy()
        yield ToSelf(rows.set_column(1, "n", pa.array(numbers // 2)).filter(pa.array(numbers > 1)))
        yield steps.to_table(touched)


class Dice(KeyedOperator):
    """Randomness from the context, the whole state one Arrow-less Python object per key, rows as Arrow."""

    output_schema = "key string, luck double"
    input_format: ClassVar[str] = "arrow"

    def handle_key(self, key: Any, rows: pa.Table, state: ValueState, context: Context) -> dict[str, Any]:
        luck = (state.get() or 0.0) + context.random.random() * rows.num_rows
        state.update(luck)
        return {"key": key, "luck": luck}


class Newest(Operator):
    """Keeps the newest rows as an Arrow table that is replaced, never changed."""

    output_schema = "rows long"

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Iterator[Any]:
        state.value = rows if state.value is None else pa.concat_tables([state.value, rows])
        state.value = state.value.slice(max(0, state.value.num_rows - 5))
        yield [{"rows": pc.sum(state.value["n"]).as_py()}]


class Parity(Operator):
    """The first of two stages: says to the sink how many came, and to the next stage whether they are odd."""

    output_schema = "came long"
    next_schema = "parity string, n long"
    emits: ClassVar[frozenset[str]] = frozenset({"next"})

    def initial_state(self) -> np.ndarray[Any, Any]:
        return np.zeros(1, np.int64)

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> Iterator[Any]:
        state.value += rows.num_rows
        yield ToSink([(int(state.value[0]),)])
        numbers = rows["n"].to_pylist()
        yield ToNext([{"parity": "odd" if number % 2 else "even", "n": number} for number in numbers])


def double(rows: pa.Table) -> pa.Table:
    return rows.set_column(1, "n", pc.multiply(rows["n"], 2))


PIPELINES: dict[str, Any] = {
    "count": CountByKey(),
    "silent count": CountByKey(silent=True),
    "sessions": Sessions(),
    "windows": Windows(),
    "feedback": Halving(),
    "dice": Dice(),
    "newest": Newest(),
    "two stages": [Parity(), Stage(CountByKey(), key=("parity",))],
    "stateless first": [stateless(double, INPUT), Sessions(), CountByKey("sessions")],
}

rows = st.lists(
    st.builds(lambda key, n: {"key": key, "n": n}, st.sampled_from("abcdefg"), st.integers(1, 60)), max_size=8
)
batches = st.lists(rows, min_size=1, max_size=7)
