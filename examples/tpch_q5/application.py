"""The application: orders and lines as inputs, the stages of the query, and the audit of its windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

import elastic
from elastic.operators import Stage
from examples.harness.application import WindowCheck
from examples.tpch_q5.batch_query import Revenues, join_purchases, sum_window
from examples.tpch_q5.query import RESULT_SCHEMA, SUPPLIED, build_stages
from examples.tpch_q5.stream import LINES, ORDERS, SCHEMAS, Purchases
from examples.workloads import Pace

_TIMES = {ORDERS: "ordered", LINES: "entered"}
_MOST_BATCHES_BEHIND = 50  # of event time, which results may be behind; more is an error
_SHOWN = 3  # results of a difference


@dataclass(frozen=True, eq=False)
class RevenueByNation:
    """Query 5 over a window that slides by one interval of the pace; every window is checked once it is complete."""

    purchases: Purchases
    intervals_per_window: int = 3
    region: str = "ASIA"
    cost_microseconds: float = 0.0
    name: str = "tpch-q5"
    results: pa.Schema = RESULT_SCHEMA
    balanced: Sequence[str] = (SUPPLIED,)

    @property
    def pace(self) -> Pace:
        return self.purchases.pace

    @property
    def window_ms(self) -> int:
        return self.intervals_per_window * self.pace.interval_ms

    def inputs(self) -> list[elastic.Input]:
        return [
            elastic.Input(
                name=name,
                schema=schema,
                event_time=_TIMES.get(name),
                watermark_delay="0 seconds" if name in _TIMES else None,
            )
            for name, schema in SCHEMAS.items()
        ]

    def stages(self) -> list[Stage]:
        return build_stages(
            self.window_ms,
            self.pace.interval_ms,
            self.purchases.most_delay_ms,
            region=self.region,
            cost_microseconds=self.cost_microseconds,
        )

    def batch(self, number: int) -> dict[str, pa.Table]:
        return self.purchases.batch(number)

    def keys_of(self, rows: Mapping[str, pa.Table]) -> pa.ChunkedArray:
        return rows[LINES]["suppkey"]

    def source_batch(self, results: pa.Table, known: int) -> int:
        """Return the last batch of the newest window, unless its results came in several batches."""
        return max(known + 1, _newest_end(results) // self.pace.every_ms - 1)

    def make_auditor(self) -> "RevenueAuditor":
        return RevenueAuditor(self.window_ms, self.purchases.most_delay_ms, self.pace, self.region)


@dataclass
class RevenueAuditor:
    """Compares all results of a window as soon as there is one of a later window: no other of it can follow."""

    window_ms: int
    most_delay_ms: int
    pace: Pace
    region: str
    _rows: dict[str, pa.Table] = field(default_factory=dict)
    _found: dict[int, Revenues] = field(default_factory=dict)  # by the end of the window
    _next_end: int = 0
    _newest_end: int = 0

    def check(self, window: int, rows: Mapping[str, pa.Table], results: pa.Table) -> WindowCheck:
        self._rows = {name: pa.concat_tables([self._rows[name], rows[name]]) for name in self._rows} or dict(rows)
        for row in results.to_pylist():
            end = _to_ms(row["window"]["end"])
            self._newest_end = max(self._newest_end, end)
            of_window = self._found.setdefault(end, {})
            if row["nation"] in of_window or end < self._next_end:
                return WindowCheck(0, f"the window until {end} ms has a second result for {row['nation']}")
            of_window[row["nation"]] = (row["revenue"], row["lines"])
        purchases = join_purchases(self._rows, self.region)
        compared = 0
        has_all_rows_until = (window + 1) * self.pace.interval_ms - self.most_delay_ms
        while self._next_end < self._newest_end and self._next_end <= has_all_rows_until:
            end = self._next_end
            expected = sum_window(purchases, end - self.window_ms, end)
            found = self._found.pop(end, {})
            if found != expected:
                return WindowCheck(compared, f"the window until {end} ms: {_difference(found, expected)}")
            compared += len(expected)
            self._next_end += self.pace.interval_ms
        self._forget()
        behind = (window + 1) * self.pace.interval_ms - self._newest_end
        if behind > self.pace.interval_ms + _MOST_BATCHES_BEHIND * self.pace.every_ms and len(purchases):
            return WindowCheck(compared, f"no result for the last {behind} ms")
        return WindowCheck(compared)

    def _forget(self) -> None:
        """Drop orders before all windows that are still to come, and lines before these."""
        oldest = pa.scalar((self._next_end - self.window_ms) * 1_000).cast(pa.timestamp("us", tz="UTC"))
        for name, column in _TIMES.items():
            self._rows[name] = self._rows[name].filter(pc.greater_equal(self._rows[name][column], oldest))


def _newest_end(results: pa.Table) -> int:
    """Return the end of the newest window, in milliseconds."""
    return _to_ms(pc.max(pc.struct_field(results["window"], "end")).as_py())


def _to_ms(time: datetime) -> int:
    return round(time.timestamp() * 1_000)


def _difference(found: Revenues, expected: Revenues) -> str:
    """Return the first nations whose results differ."""
    differing = sorted(nation for nation in {*found, *expected} if found.get(nation) != expected.get(nation))
    return "; ".join(
        f"{nation}: {found.get(nation)} instead of {expected.get(nation)}" for nation in differing[:_SHOWN]
    )
