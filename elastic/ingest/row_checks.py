"""Checks of rows before they are logged: a key must not be null, a row must fit into the buffers on its way."""

import pyarrow as pa
import pyarrow.compute as pc

from elastic.errors import NullKey, RowTooLarge
from elastic.ingest.batch_spec import BatchSpec, StageFeed


def check_keys(rows: pa.Table, spec: BatchSpec, feed: StageFeed) -> pa.Table:
    """Return the rows to send to a stage, by the setting `null_keys`; nearly free where no key is null.

    A key of several columns is null where all of them are.
    """
    policy = spec.settings.null_keys
    if policy == "keep" or not spec.routing.groupings[feed.stage].needs_key:
        return rows
    if not all(rows[name].null_count for name in feed.key):
        return rows
    missing = pc.is_null(rows[feed.key[0]])
    for name in feed.key[1:]:
        missing = pc.and_(missing, pc.is_null(rows[name]))
    count = pc.sum(missing).as_py() or 0
    if count and policy == "fail":
        raise NullKey(", ".join(feed.key), count, spec.batch)
    return rows.filter(pc.invert(missing)) if count else rows


def check_sizes(rows: pa.Table, spec: BatchSpec) -> None:
    """Raise `RowTooLarge` for a row that does not fit; nearly free where none can be too large."""
    limit = spec.settings.max_row_bytes
    if rows.nbytes <= limit:
        return
    for batch in rows.to_batches():
        if batch.nbytes > limit:
            _check_rows(batch, limit, spec.batch)


def _check_rows(batch: pa.RecordBatch, limit: int, number: int) -> None:
    """Halve until what is left is small enough or a single row."""
    if batch.nbytes <= limit:
        return
    if batch.num_rows == 1:
        raise RowTooLarge(batch.nbytes, limit, number)
    half = batch.num_rows // 2
    _check_rows(batch.slice(0, half), limit, number)
    _check_rows(batch.slice(half), limit, number)
