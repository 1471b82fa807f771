"""The answers of both engines, in a form in which equal answers are equal tables.

An answer has its rows in order, without those about the rows of the last files. Updates count by the last one: an
aggregate only grows. Where rows may tie, Spark's query keeps one, and so does the answer of this engine.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark.event_files import is_event

Normalise = Callable[[pa.Table], pa.Table]


def compare(number: int, ours: pa.Table, theirs: pa.Table | None) -> str:
    """Return "equal", "different", or "-" if there is nothing to compare with; both are raw results."""
    if theirs is None:
        return "-"
    return "equal" if normalise_ours(number, ours).equals(normalise_theirs(number, theirs)) else "different"


def compare_runs(number: int, ours: pa.Table, again: pa.Table) -> str:
    """Return whether two runs of this engine answered the same."""
    return "equal" if normalise_ours(number, ours).equals(normalise_ours(number, again)) else "different"


def normalise_ours(number: int, rows: pa.Table) -> pa.Table:
    return _in_order(OURS[number](rows))


def normalise_theirs(number: int, rows: pa.Table) -> pa.Table:
    return _in_order(THEIRS[number](rows))


def _in_order(rows: pa.Table) -> pa.Table:
    rows = rows.filter(is_event(rows))
    arrays = [_plain(rows[name]) for name in sorted(rows.column_names)]
    rows = pa.table(arrays, names=sorted(rows.column_names))
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in rows.column_names])).combine_chunks()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as microseconds, whatever their unit and zone, and lists as text."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_list(column.type):
        return pa.chunked_array([[",".join(map(str, each)) for each in column.to_pylist()]], pa.string())
    return column


def _columns(*names: str) -> Normalise:
    return lambda rows: rows.select(list(names))


def _start_ms(rows: pa.Table, window: str = "window") -> pa.ChunkedArray:
    start = pc.struct_field(rows[window].combine_chunks(), "start")
    return pc.divide(start.cast(pa.timestamp("us", start.type.tz)).cast(pa.int64()), 1_000)


def _by_window(*names: str, window: str = "window") -> Normalise:
    return lambda rows: rows.select(list(names)).append_column("start_ms", _start_ms(rows, window))


def _greatest(value: str) -> Normalise:
    """Keep the greatest auction of those that tie in a window."""

    def keep(rows: pa.Table) -> pa.Table:
        rows = rows.select(["auction", value]).append_column("start_ms", _start_ms(rows))
        return _aggregate(rows, ["start_ms", value], auction="max")

    return keep


def _first(value: str) -> Normalise:
    def unpack(rows: pa.Table) -> pa.Table:
        first = rows["first"].combine_chunks()
        columns = {name: pc.struct_field(first, name) for name in ("auction", value)}
        return pa.table({**columns, "start_ms": _start_ms(rows)})

    return unpack


def _aggregate(rows: pa.Table, keys: list[str], **functions: str) -> pa.Table:
    found = rows.group_by(keys).aggregate(list(functions.items()))
    return found.rename_columns({f"{name}_{function}": name for name, function in functions.items()})


def _last_average(rows: pa.Table) -> pa.Table:
    """Return the average of a category over the most auctions."""
    most = _aggregate(rows, ["category"], auctions="max")
    return _aggregate(rows, ["category", "auctions"], price="max").join(
        most, ["category", "auctions"], join_type="inner"
    )


def _add_windows(rows: pa.Table) -> pa.Table:
    added = _aggregate(rows, ["category"], total="sum", auctions="sum")
    price = pc.divide(added["total"].cast(pa.float64()), added["auctions"].cast(pa.float64()))
    return added.drop_columns("total").append_column("price", price)


def _add_counts(rows: pa.Table) -> pa.Table:
    """Add up the windows of a person, which are of processing time and so differ between runs."""
    windowed = rows.select(["person", "bids"]).append_column("at", _start_ms(rows))
    return _aggregate(_aggregate(windowed, ["person", "at"], bids="max"), ["person"], bids="sum")


def _last_bids(rows: pa.Table) -> pa.Table:
    return _aggregate(rows.select(["person", "auction", "ts"]), ["person", "auction"], ts="max")


def _last_of_spark(rows: pa.Table) -> pa.Table:
    ts = pc.struct_field(rows["last"].combine_chunks(), "ts")
    return _last_bids(rows.select(["person", "auction"]).append_column("ts", ts))


def _last_of_sellers(rows: pa.Table) -> pa.Table:
    """Return the row of the last batch of every seller."""
    rows = rows.select(["seller", "price", "auctions", "_batch"])
    last = _aggregate(rows, ["seller"], _batch="max")
    return rows.join(last, ["seller", "_batch"], join_type="inner").drop_columns("_batch")


def _last_ranks(rows: pa.Table) -> pa.Table:
    """Return the last price of every rank; a price of a rank never becomes less."""
    return _aggregate(rows.select(["auction", "rank", "price"]), ["auction", "rank"], price="max")


def _unpack_ranks(rows: pa.Table) -> pa.Table:
    prices = rows["prices"].combine_chunks()
    lengths = pc.list_value_length(prices).to_numpy()
    begins = np.cumsum(lengths) - lengths
    ranks = np.arange(int(lengths.sum())) - np.repeat(begins, lengths) + 1
    auctions = np.repeat(rows["auction"].to_numpy(), lengths)
    return _last_ranks(pa.table({"auction": auctions, "rank": ranks, "price": pc.list_flatten(prices)}))


BID = ("person", "auction", "ts", "price")
OURS: dict[int, Normalise] = {
    0: _columns(*BID),
    1: _columns(*BID),
    2: _columns("auction", "price"),
    3: _columns("person", "auction", "state"),
    4: _last_average,
    5: _greatest("bids"),
    6: _last_of_sellers,
    7: _greatest("price"),
    8: _by_window("person", "auction"),
    11: _by_window("person", "bids", window="session_window"),
    12: _add_counts,
    18: _last_bids,
    19: _last_ranks,
    20: _columns("auction", "bidder", "price", "seller"),
}
THEIRS: dict[int, Normalise] = {
    **OURS,
    4: _add_windows,
    5: _first("bids"),
    7: _first("price"),
    18: _last_of_spark,
    19: _unpack_ranks,
}
