"""The operator under test, its input, and what it must come to in one undisturbed process."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from elastic.operators import Context, Operator, State
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner
from elastic.routing import hash_keys, split, to_tasks
from storage.state import UnitId

TASKS = 8
KEYS = ("a", "b", "c", "d", "e")
SCHEMA = pa.schema([("key", pa.string()), ("value", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
WINDOW_MS = 4_000
BATCH_MS = 3_000  # by which event time moves on in a batch
FAILS = -1  # a value that the operator raises on


class Ledger(Operator):
    """A hash chain over the rows of every key, in their order, and counts in windows of event time.

    Emits every row with its link and the watermark, and a window when the watermark passes its end. A row that is lost,
    doubled, reordered or met by another watermark changes what follows.
    """

    output_schema = "key string, link string, window long, rows long"

    def initial_state(self) -> dict[Any, dict[str, Any]]:
        return {}

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> list[dict[str, Any]]:
        if FAILS in rows["value"].to_pylist():
            raise ValueError("a row that the operator cannot handle")
        emitted = []
        for row in rows.to_pylist():
            known = state.value.setdefault(row["key"], {"link": "", "rows": 0, "windows": {}})
            text = f"{known['link']} {row['value']} {context.watermark_ms}"
            known["link"] = hashlib.sha256(text.encode()).hexdigest()[:12]
            known["rows"] += 1
            start = int(row["ts"].timestamp() * 1_000) // WINDOW_MS * WINDOW_MS
            if context.watermark_ms is None or start + WINDOW_MS > context.watermark_ms:
                known["windows"][start] = known["windows"].get(start, 0) + 1
                context.set_timer(start + WINDOW_MS, name=f"{row['key']} {start}")
            emitted.append({"key": row["key"], "link": known["link"], "window": None, "rows": known["rows"]})
        return emitted

    def handle_timer(self, timer: Any, state: State, _: Context) -> list[dict[str, Any]]:
        text, _, start = timer.name.partition(" ")
        key = None if text == "None" else text
        rows = state.value[key]["windows"].pop(int(start))
        return [{"key": key, "link": None, "window": int(start), "rows": rows}]


@dataclass(frozen=True)
class Batch:
    """The rows of one file, and how they are ingested."""

    rows: list[dict[str, Any]]
    null_keys: str
    on_error: str
    delay_ms: int

    def table(self) -> pa.Table:
        kept = [row for row in self.rows if row["key"] is not None or self.null_keys == "keep"]
        return pa.Table.from_pylist([{**row, "ts": row["ts"] * 1_000} for row in kept], _MICROSECONDS).cast(SCHEMA)


_MICROSECONDS = pa.schema([("key", pa.string()), ("value", pa.int64()), ("ts", pa.int64())])


def rows_of(batch: int, *, with_null: bool, with_failure: bool) -> list[dict[str, Any]]:
    """The rows of a file: every key twice, one row late; `ts` in milliseconds."""
    start = 1_000_000 + batch * BATCH_MS
    rows = [{"key": key, "value": 100 * batch + n, "ts": start + 250 * n} for n, key in enumerate(KEYS * 2)]
    rows.append({"key": KEYS[batch % len(KEYS)], "value": batch, "ts": start - 5 * BATCH_MS})
    if with_null:
        rows.append({"key": None, "value": batch, "ts": start})
    if with_failure:
        rows.append({"key": KEYS[0], "value": FAILS, "ts": start})
    return rows


@dataclass
class Expected:
    """One process that takes batch after batch: results by batch, the number of quarantined rows, and the states."""

    results: list[Counter[str]] = field(default_factory=list)
    quarantined: int = 0

    def __post_init__(self) -> None:
        self._runners = {
            policy: StageRunner(Ledger(), key=("key",), input_schema=SCHEMA, on_error=policy, name="ledger")
            for policy in ("fail", "skip")
        }
        self._states = [self._runners["fail"].new_state() for _ in range(TASKS)]
        self._watermark: int | None = None

    def take(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            latest = max(row["ts"] for row in batch.rows) - batch.delay_ms
            following = latest if self._watermark is None else max(latest, self._watermark)
            self._take(batch, following)
            self._watermark = following

    def state(self, key: str) -> Any:
        return next((state.value[key] for state in self._states if key in state.value), None)

    def _take(self, batch: Batch, following: int) -> None:
        rows, runner = batch.table(), self._runners[batch.on_error]
        slices = split(rows, to_tasks(hash_keys([rows["key"]]), TASKS)).slices()
        results: Counter[str] = Counter()
        for task, state in enumerate(self._states):
            moment = Moment(UnitId(0, task), len(self.results), 0, 0, self._watermark, following)
            output = runner.step(state, [slices[task]] if task in slices else [], moment)
            results += lines_of(output.sink)
            self.quarantined += 0 if output.quarantined is None else output.quarantined.num_rows
        self.results.append(results)


def lines_of(rows: pa.Table | None) -> Counter[str]:
    if rows is None or not rows.num_rows:
        return Counter()
    return Counter(map(str, rows.select(["key", "link", "window", "rows"]).to_pylist()))
