"""The application: trades as rows, the joining stage, and the audit of its pairs."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic import Input
from elastic.operators import Stage
from examples.harness.application import Rows, WindowCheck, make_input
from examples.self_join.batch_join import join_trades
from examples.self_join.sliding_join import PAIR_SCHEMA, SlidingSelfJoin
from examples.workloads import TRADE_SCHEMA, Pace, Trades

_SHOWN = 3  # pairs of a difference
_MICROSECONDS = 1_000
_Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class TradeSelfJoin:
    """Joins trades with those of the same symbol within `window_ms`; results are checked every interval of the pace."""

    trades: Trades
    window_ms: int
    cost_microseconds: float = 0.0
    name: str = "self-join"
    balanced: tuple[str, ...] = ("pairs",)

    @property
    def pace(self) -> Pace:
        return self.trades.pace

    @property
    def results(self) -> pa.Schema:
        return PAIR_SCHEMA

    def inputs(self) -> list[Input]:
        return make_input(TRADE_SCHEMA, "symbol", self.trades.delay_ms)

    def stages(self) -> list[Stage]:
        joining = SlidingSelfJoin(self.window_ms, self.cost_microseconds)
        return [Stage(joining, "symbol", "pairs", grouping="table")]

    def batch(self, number: int) -> pa.Table:
        return self.trades.batch(number)

    def keys_of(self, rows: Rows) -> pa.ChunkedArray:
        return rows["symbol"]

    def source_batch(self, results: pa.Table, known: int) -> int:  # noqa: ARG002 - trades are numbered as they arrive
        return int(_to_array(results).max()) // self.pace.rows_per_batch

    def make_auditor(self) -> "PairAuditor":
        return PairAuditor(self.window_ms, self.trades.delay_ms)


@dataclass
class PairAuditor:
    """Joins the trades of an interval with all that can be their partners, and compares the pairs."""

    window_ms: int
    delay_ms: int
    _recent: pa.Table = field(default_factory=TRADE_SCHEMA.empty_table)  # trades that may still find partners
    _ahead: _Pairs = field(default_factory=lambda: np.zeros((0, 2), np.int64))  # pairs with a trade after the window

    def check(self, window: int, rows: Rows, results: pa.Table) -> WindowCheck:  # noqa: ARG002 - in order
        trades = pa.concat_tables([self._recent, rows])
        first, last = pc.min(rows["trade"]).as_py(), pc.max(rows["trade"]).as_py()
        found = np.concatenate([self._ahead, _to_array(results)])
        is_ahead = found.max(axis=1, initial=-1) > last
        self._ahead = found[is_ahead]
        joined = _to_array(join_trades(trades, self.window_ms))
        expected = joined[joined.max(axis=1, initial=-1) >= first]
        self._recent = self._keep_recent(trades)
        return WindowCheck(len(expected), _difference(found[~is_ahead], expected))

    def _keep_recent(self, trades: pa.Table) -> pa.Table:
        times = trades["time"].cast(pa.int64())
        oldest = pc.max(times).as_py() - (self.window_ms + 2 * self.delay_ms) * _MICROSECONDS
        return trades.filter(pc.greater(times, oldest))


def _to_array(pairs: pa.Table) -> _Pairs:
    return np.stack([pairs["buy"].to_numpy(), pairs["sell"].to_numpy()], axis=1)


def _difference(found: _Pairs, expected: _Pairs) -> str | None:
    """Return how two multisets of pairs differ; None if they are equal."""
    counts: dict[tuple[int, int], int] = {}
    for pairs, step in ((found, 1), (expected, -1)):
        for buy, sell in pairs.tolist():
            counts[buy, sell] = counts.get((buy, sell), 0) + step
    missing = [pair for pair, count in counts.items() if count < 0]
    unexpected = [pair for pair, count in counts.items() if count > 0]
    parts = [
        f"{len(pairs)} {kind}: {', '.join(map(str, pairs[:_SHOWN]))}"
        for kind, pairs in (("missing", missing), ("unexpected", unexpected))
        if pairs
    ]
    return "; ".join(parts) or None
