"""The operator: pairs of a purchase and a sale of the same stock by the same player, at a similar price and time."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.operators import Context, Operator, State, Timer
from elastic.operators.operator import Hashes, Yields
from examples.harness.cost import spend

PAIR_SCHEMA = pa.schema([("symbol", pa.string()), ("buy", pa.int64()), ("sell", pa.int64())])
PRICE_SHARE = 100  # prices are similar if they differ by at most 1 / 100 of the lower one
_MICROSECONDS = 1_000
_TRADE = np.dtype(
    [("time_ms", "<i8"), ("trade", "<i8"), ("player", "<i8"), ("cents", "<i8"), ("is_buy", "?")], align=True
)
_Trades = NDArray[np.void]
_EMPTY = np.zeros(0, _TRADE)


class SlidingSelfJoin(Operator):
    """Pairs every trade with the trades of its symbol within `window_ms` before and after it, each pair once.

    The state is a dict of the recent trades of every symbol, so it can be divided. A trade is dropped when the
    watermark has passed it by the window: no later trade that is not late can be its partner. One timer per symbol sees
    to that, also where no more trades of the symbol arrive. Late trades are dropped. Joining n new trades with m recent
    ones of a symbol takes O(n (n + m)).
    """

    output_schema = PAIR_SCHEMA

    def __init__(self, window_ms: int, cost_microseconds: float = 0.0) -> None:
        self._window_ms = window_ms
        self._cost_microseconds = cost_microseconds

    def initial_state(self) -> dict[str, _Trades]:
        return {}

    def handle_batch(self, rows: pa.Table, state: State, context: Context) -> Yields:
        spend(rows.num_rows, self._cost_microseconds)
        pairs = []
        for symbol, new in _group_by_symbol(rows.filter(pc.invert(context.late(rows, "time")))):
            recent = self._drop_old(state.value.get(symbol, _EMPTY), context)
            trades = np.concatenate([recent, new])
            if symbol not in state.value:
                self._set_timer(symbol, trades, context)
            state.value[symbol] = trades
            pairs.append((symbol, *self._join(trades, len(recent))))
        yield _to_table(pairs)

    def handle_timer(self, timer: Timer, state: State, context: Context) -> Yields:
        """Drop the old trades of a symbol; the timer is set again as long as there are others."""
        kept = self._drop_old(state.value[timer.key], context)
        if len(kept):
            state.value[timer.key] = kept
            self._set_timer(timer.key, kept, context)
        else:
            del state.value[timer.key]

    def part(self, state: State, hashes: Hashes) -> dict[str, _Trades]:
        return {symbol: state.value.pop(symbol) for symbol in self.select_keys(state.value, hashes)}

    def join(self, state: State, part: dict[str, _Trades]) -> None:
        state.value.update(part)

    def state_size(self, value: dict[str, _Trades]) -> int:
        return sum(trades.nbytes for trades in value.values())

    def state_rows(self, value: dict[str, _Trades]) -> pa.Table:
        """Return the recent trades, a row each."""
        symbols = [symbol for symbol, trades in value.items() for _ in range(len(trades))]
        trades = np.concatenate([_EMPTY, *value.values()])
        columns = {name: np.ascontiguousarray(trades[name]) for name in _TRADE.names or ()}
        return pa.table({"symbol": pa.array(symbols, pa.string()), **columns})

    def lookup(self, value: dict[str, _Trades], key: tuple[Any, ...]) -> list[int]:
        """Return the numbers of the recent trades of a symbol."""
        numbers: list[int] = value.get(key[0], _EMPTY)["trade"].tolist()
        return numbers

    def _set_timer(self, symbol: str, trades: _Trades, context: Context) -> None:
        """Set the timer of a symbol to the time at which its oldest trade may be dropped."""
        context.set_timer(int(trades["time_ms"].min()) + self._window_ms, "event", key=symbol)

    def _drop_old(self, trades: _Trades, context: Context) -> _Trades:
        if context.watermark_ms is None:
            return trades
        return trades[trades["time_ms"] + self._window_ms > context.watermark_ms]

    def _join(self, trades: _Trades, recent: int) -> tuple[_Trades, _Trades]:
        """Return the partners of all trades after the first `recent` ones, as two columns of trades."""
        new = trades[recent:, np.newaxis]
        is_earlier = np.arange(len(trades)) < np.arange(recent, len(trades))[:, np.newaxis]
        similar = PRICE_SHARE * abs(new["cents"] - trades["cents"]) <= np.minimum(new["cents"], trades["cents"])
        close = abs(new["time_ms"] - trades["time_ms"]) <= self._window_ms
        opposite = (new["player"] == trades["player"]) & (new["is_buy"] != trades["is_buy"])
        one, other = np.nonzero(is_earlier & opposite & close & similar)
        return trades[recent + one], trades[other]


def _group_by_symbol(rows: pa.Table) -> list[tuple[str, _Trades]]:
    """Return the trades of every symbol, in their order."""
    if not rows.num_rows:
        return []
    symbols = rows["symbol"].combine_chunks().dictionary_encode()
    numbers = symbols.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    trades = np.zeros(rows.num_rows, _TRADE)
    trades["time_ms"] = rows["time"].cast(pa.int64()).to_numpy() // _MICROSECONDS
    for name in ("trade", "player", "cents", "is_buy"):
        trades[name] = rows[name].to_numpy()
    edges = np.cumsum(np.bincount(numbers, minlength=len(symbols.dictionary)))[:-1]
    return list(zip(symbols.dictionary.to_pylist(), np.split(trades[order], edges), strict=True))


def _to_table(pairs: list[tuple[str, _Trades, _Trades]]) -> pa.Table:
    """Return the pairs of all symbols, each with its purchase first."""
    symbols = [symbol for symbol, one, _ in pairs for _ in range(len(one))]
    one = np.concatenate([_EMPTY, *(trades for _, trades, _ in pairs)])
    other = np.concatenate([_EMPTY, *(trades for _, _, trades in pairs)])
    buys = np.where(one["is_buy"], one["trade"], other["trade"])
    sells = np.where(one["is_buy"], other["trade"], one["trade"])
    return pa.Table.from_arrays([pa.array(symbols, pa.string()), pa.array(buys), pa.array(sells)], schema=PAIR_SCHEMA)
