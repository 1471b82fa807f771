"""The same join over a table at rest."""

import pyarrow as pa
import pyarrow.compute as pc

from examples.self_join.sliding_join import PAIR_SCHEMA, PRICE_SHARE

_MICROSECONDS = 1_000


def join_trades(trades: pa.Table, window_ms: int) -> pa.Table:
    """Return all pairs of a purchase and a sale of the same symbol by the same player, close in time and price."""
    buys = trades.filter(trades["is_buy"])
    sells = trades.filter(pc.invert(trades["is_buy"]))
    both = buys.join(sells, ["symbol", "player"], join_type="inner", right_suffix="_sold")
    milliseconds = [pc.divide(both[name].cast(pa.int64()), _MICROSECONDS) for name in ("time", "time_sold")]
    gap = pc.abs(pc.subtract(*milliseconds))
    spread = pc.multiply(pc.abs(pc.subtract(both["cents"], both["cents_sold"])), PRICE_SHARE)
    lower = pc.min_element_wise(both["cents"], both["cents_sold"])
    pairs = both.filter(pc.and_(pc.less_equal(gap, window_ms), pc.less_equal(spread, lower)))
    return pa.Table.from_arrays([pairs["symbol"], pairs["trade"], pairs["trade_sold"]], schema=PAIR_SCHEMA)
