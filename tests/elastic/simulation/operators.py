"""Operators that notice what a world does to them: loss, repetition, another order, another clock."""

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic import threads
from elastic.operators import (
    Aggregate,
    Context,
    CountByKey,
    IntervalJoin,
    KeyedOperator,
    Operator,
    Side,
    Stage,
    State,
    StatelessOperator,
    ToNext,
    ToSelf,
    ToSink,
    ValueState,
    partial,
    window,
)
from elastic.operators import functions as F  # noqa: N812 - the name that Spark's users know

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("at", pa.int64())])


class ByKey(Operator):
    """The state is a dict by key, so that it can be divided."""

    def initial_state(self) -> dict[int, Any]:
        return {}

    def part(self, state: State, hashes: NDArray[np.int64]) -> dict[int, Any]:
        return {key: state.value.pop(key) for key in self.select_keys(state.value, hashes)}

    def join(self, state: State, part: dict[int, Any]) -> None:
        state.value.update(part)


class History(ByKey):
    """Remembers every value of every key, in order, and tells what it knew before: sees loss, repetition and order."""

    output_schema = "key long, value long, before long"

    def handle_batch(self, rows: pa.Table, state: State, _context: Context) -> list[dict[str, int]]:
        told = []
        for row in rows.to_pylist():
            known = state.value.setdefault(row["key"], [])
            told.append({"key": row["key"], "value": row["value"], "before": len(known)})
            known.append(row["value"])
        return told


class Alarm(History):
    """The same, and some time after a key came a processing-time timer tells of it."""

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[dict[str, int]]:
        told = super().handle_batch(rows, state, context)
        for row in told:
            context.set_timer(context.timestamp_ms + 1_500, kind="processing", key=row["key"])
        return told

    def handle_timer(self, timer: Any, state: State, _context: Context) -> list[dict[str, int]]:
        return [{"key": timer.key, "value": -1, "before": len(state.value[timer.key])}]


class Windows(Operator):
    """Sums values in tumbling windows of event time; a window is emitted when the watermark passes its end.

    Late rows are emitted one by one, with the watermark that made them late: another watermark, in any batch, of any
    unit, gives other results.
    """

    output_schema = "key long, window long, sum long, watermark long"
    size_ms = 1_000

    def initial_state(self) -> dict[int, dict[int, int]]:
        return {}

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[dict[str, int]]:
        late = []
        for row, is_late in zip(rows.to_pylist(), context.late(rows, "at").to_pylist(), strict=True):
            start = row["at"] - row["at"] % self.size_ms
            if is_late:
                late.append(self._row(row["key"], start, row["value"], context))
                continue
            window = state.value.setdefault(start, {})
            window[row["key"]] = window.get(row["key"], 0) + row["value"]
            context.set_timer(start + self.size_ms, name=str(start))
        return late

    def handle_timer(self, timer: Any, state: State, context: Context) -> list[dict[str, int]]:
        start = int(timer.name)
        return [self._row(key, start, total, context) for key, total in sorted(state.value.pop(start, {}).items())]

    def _row(self, key: int, start: int, total: int, context: Context) -> dict[str, int]:
        watermark = -1 if context.watermark_ms is None else context.watermark_ms
        return {"key": key, "window": start, "sum": total, "watermark": watermark}


class Countdown(Operator):
    """Sends every record back to itself under another key until its value is 0: many rounds, and state in each."""

    output_schema = "key long, value long, at long"
    emits = frozenset({"self"})

    def initial_state(self) -> Counter[int]:
        return Counter()

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[Any]:
        again = [{**r, "key": r["key"] + 1, "value": r["value"] - 1} for r in rows.to_pylist() if r["value"] > 0]
        state.value.update(rows["key"].to_pylist())
        done = [{**r, "value": 0} for r in rows.to_pylist() if r["value"] == 0]
        return [ToSelf(again), ToSink(done)]


class Chain(Operator):
    """A hash chain of every row that a task saw, in order, in every round; each row continues elsewhere until it is 0.

    A row or an event-time timer that comes earlier or later than in the log, in any round, changes all that follows.
    """

    output_schema = "key long, value long, link string"
    emits = frozenset({"self"})

    def initial_state(self) -> dict[str, str]:
        return {"link": ""}

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[Any]:
        again, told = [], []
        for row in rows.to_pylist():
            text = f"{state.value['link']} {context.batch} {context.round} {sorted(row.items())}"
            state.value["link"] = hashlib.sha256(text.encode()).hexdigest()[:12]
            told.append({"key": row["key"], "value": row["value"], "link": state.value["link"]})
            if row["value"] > 0:
                again.append({**row, "key": 7 * row["key"] + row["value"], "value": row["value"] - 1})
            context.set_timer(row["at"], name=str(context.round))
        return [ToSelf(again), ToSink(told)]

    def handle_timer(self, timer: Any, state: State, context: Context) -> list[Any]:
        text = f"{state.value['link']} {context.batch} {timer.name} {timer.at_ms}"
        state.value["link"] = hashlib.sha256(text.encode()).hexdigest()[:12]
        return [ToSink([{"key": -1, "value": int(timer.name), "link": state.value["link"]}])]


class Chains(ByKey):
    """The same with a chain for every key, which does not depend on the task that the key lives in."""

    output_schema = "key long, value long, link string"
    emits = frozenset({"self"})

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[Any]:
        again, told = [], []
        for row in rows.to_pylist():
            link = self._extend(state, row["key"], f"{context.batch} {context.round} {sorted(row.items())}")
            told.append({"key": row["key"], "value": row["value"], "link": link})
            if row["value"] > 0:
                again.append({**row, "key": 7 * row["key"] + row["value"], "value": row["value"] - 1})
            context.set_timer(row["at"], name=str(context.round), key=row["key"])
        return [ToSelf(again), ToSink(told)]

    def handle_timer(self, timer: Any, state: State, context: Context) -> list[Any]:
        link = self._extend(state, timer.key, f"{context.batch} {timer.name} {timer.at_ms}")
        return [ToSink([{"key": timer.key, "value": -1, "link": link}])]

    def _extend(self, state: State, key: int, text: str) -> str:
        link = hashlib.sha256(f"{state.value.get(key, '')} {text}".encode()).hexdigest()[:12]
        state.value[key] = link
        return link


class Relay(ByKey):
    """Remembers values as `History` does, and sends every record on under another key, to be grouped anew."""

    output_schema = "key long, before long"
    next_schema = "key long, value long, at long"
    emits = frozenset({"next"})

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> list[Any]:
        told, on = [], []
        for row in rows.to_pylist():
            known = state.value.setdefault(row["key"], [])
            told.append({"key": row["key"], "before": len(known)})
            known.append(row["value"])
            on.append({**row, "key": row["key"] + row["value"]})
        return [ToNext(on), ToSink(told)]


class Totals(KeyedOperator):
    """Sums the values of every key, and tells how many there were."""

    output_schema = "key long, rows long, total long"

    def combine(self, rows: pa.Table) -> pa.Table:
        ones = rows.append_column("rows", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
        return self.merge(ones.rename_columns(["key", "total", "at", "rows"]))

    def merge(self, partials: pa.Table) -> pa.Table:
        sums = partials.group_by("key", use_threads=False).aggregate([("rows", "sum"), ("total", "sum")])
        return sums.rename_columns(["key", "rows", "total"])

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def handle_key(self, key: Any, rows: list[Any], state: ValueState, _: Context) -> dict[str, int]:
        known, total = state.get()
        state.update((known + sum(row["rows"] for row in rows), total + sum(row["total"] for row in rows)))
        return {"key": key, "rows": state.get()[0], "total": state.get()[1]}


class Drawn(StatelessOperator):
    """Takes longer for some keys than for others, and draws a number for every row.

    So a replay that divides rows in another way than before gives other results.
    """

    output_schema = "key long, value long, drawn long"
    next_schema = "key long, value long, at long"

    def handle_rows(self, rows: pa.Table, context: Context) -> list[Any]:
        threads.sleep(0.002 * sum(1 + 9 * (key % 5 == 0) for key in rows["key"].to_pylist()))
        drawn = context.random.integers(1_000, size=rows.num_rows).tolist()
        told = [{**row, "drawn": number} for row, number in zip(rows.to_pylist(), drawn, strict=True)]
        return [{name: row[name] for name in ("key", "value", "drawn")} for row in told]


class DrawnOn(Drawn):
    """The same, and sends every row on."""

    emits = frozenset({"next"})

    def handle_rows(self, rows: pa.Table, context: Context) -> list[Any]:
        return [ToNext(rows), ToSink(super().handle_rows(rows, context))]


class TimeOfWindow(StatelessOperator):
    """Gives results of windows a time again: the last one of their window."""

    output_schema = "key long, value long, at long"

    def handle_rows(self, rows: pa.Table, _: Context) -> pa.Table:
        ends = pc.struct_field(rows["window"].combine_chunks(), "end")
        return pa.table({"key": rows["key"], "value": rows["value"], "at": pc.subtract(ends, 1)})


def sums(duration: str) -> Operator:
    return Aggregate(value=F.sum("value")).over(window(duration), time="at")


WINDOWS_DEEP = [
    Stage(sums("1 second"), ("key",), "seconds"),
    Stage(TimeOfWindow(), ("key",)),
    Stage(sums("2 seconds"), ("key",), grouping="table"),
    Stage(TimeOfWindow(), ("key",)),
    Stage(sums("4 seconds"), ("key",), "deep"),
]
JOINED = [
    Stage(
        IntervalJoin(
            Side("a", time="at", columns={"a": "value", "a_at": "at"}),
            Side("b", time="at", columns={"b": "value", "b_at": "at"}),
            lower="-400 ms",
            upper="900 ms",
        ),
        ("key",),
        "joined",
        grouping="table",
        inputs=["a", "b"],
    )
]
DIAMOND = [
    Stage(sums("1 second"), ("key",), "of a", inputs=["a"]),
    Stage(TimeOfWindow(), ("key",), "left", inputs=["of a"]),
    Stage(sums("1 second"), ("key",), "of both", inputs=["a", "b"], grouping="table"),
    Stage(TimeOfWindow(), ("key",), "right", inputs=["of both"]),
    Stage(
        IntervalJoin(
            Side("left", time="at", columns={"left": "value", "at": "at"}),
            Side("right", time="at", columns={"right": "value"}),
            upper="0 ms",
            how="full",
        ),
        ("key",),
        "met",
        inputs=["left", "right"],
    ),
    Stage(CountByKey(), ("key",), "rows of b", inputs=["b"]),
]

PIPELINES: dict[str, list[Stage]] = {
    "order in round 0": [Stage(History(), ("key",))],
    "order in every round": [Stage(Chain(), ("key",))],
    "processing time": [Stage(Alarm(), ("key",), grouping="table")],
    "event time": [Stage(Windows(), ("key",))],
    "columns": [Stage(CountByKey(), ("key",), grouping="table")],
    "two stages": [Stage(Countdown(), ("key",)), Stage(CountByKey(), ("key",))],
    "a table of keys": [Stage(History(), ("key",), grouping="table")],
    "tables between rounds": [
        Stage(Relay(), ("key",), grouping="table"),
        Stage(Chains(), ("key",), grouping="table"),
        Stage(CountByKey(), ("key",)),
    ],
    "split keys": [*partial(Stage(CountByKey(), ("key",)))],
    "split keys held for a while": [*partial(Stage(Totals(), ("key",), grouping="table"), every="2 seconds")],
    "keys split by nodes": [
        Stage(Relay(), ("key",), grouping="table"),
        *partial(Stage(Totals(), ("key",)), every="1 batch", split="head"),
    ],
    "shuffled rows": [Stage(Drawn(), grouping="shuffle", cost_key="key")],
    "rows shuffled by nodes": [
        Stage(Relay(), ("key",), grouping="table"),
        Stage(DrawnOn(), ("key",), grouping="shuffle", scheduler="posg-batch"),
        Stage(CountByKey(), ("key",)),
    ],
    "windows of windows of windows": WINDOWS_DEEP,
    "a join of two inputs": JOINED,
    "a diamond of stages": DIAMOND,
}
