"""Every kernel once, on next to nothing: compiled into the cache, or loaded from it."""

from elastic.operators.columns.keyed_columns import KeyedColumns
from elastic.routing import xxh64


def load_kernels() -> None:
    """Takes seconds the first time on a machine, and half of one in every process after that."""
    xxh64.load()
    for keys in ("key long", "key string"):
        columns = KeyedColumns(keys, {"count": "int64"})
        values = [1, 2] if keys == "key long" else ["a", "b"]
        columns.to_table(columns.count("count", columns.rows_for(values)))
        KeyedColumns.from_arrays(columns.to_arrays()).find(values)
