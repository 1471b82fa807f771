"""Rows are looked at before they are logged: a key must be there, a row must have a size that buffers can hold."""

import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import NullKey, RowTooLarge
from elastic.runtime.intake.orders import Orders


def checked(rows: pa.Table, orders: Orders) -> pa.Table:
    """The rows to send; costs nothing to speak of where no key is null and no row can be too large."""
    _check_sizes(rows, orders)
    return _with_keys(rows, orders)


def _with_keys(rows: pa.Table, orders: Orders) -> pa.Table:
    """A key of several columns is null where all of them are."""
    policy = orders.settings.null_keys
    if policy == "keep" or not all(rows[name].null_count for name in orders.key):
        return rows
    missing = pc.is_null(rows[orders.key[0]])
    for name in orders.key[1:]:
        missing = pc.and_(missing, pc.is_null(rows[name]))
    count = pc.sum(missing).as_py() or 0
    if count and policy == "fail":
        raise NullKey(", ".join(orders.key), count, orders.batch)
    return rows.filter(pc.invert(missing)) if count else rows


def _check_sizes(rows: pa.Table, orders: Orders) -> None:
    limit = orders.settings.max_row_bytes
    if rows.nbytes <= limit:
        return
    for batch in rows.to_batches():
        if batch.nbytes > limit:
            _check_rows(batch, limit, orders.batch)


def _check_rows(batch: pa.RecordBatch, limit: int, number: int) -> None:
    """Halve until what is left is small enough or a single row."""
    if batch.nbytes <= limit:
        return
    if batch.num_rows == 1:
        raise RowTooLarge(batch.nbytes, limit, number)
    half = batch.num_rows // 2
    _check_rows(batch.slice(0, half), limit, number)
    _check_rows(batch.slice(half), limit, number)
