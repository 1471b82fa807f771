"""Columnar state by key: keys become row numbers, columns are NumPy arrays by row, and rows of a key wait as Arrow."""

from elastic.operators.columns.keyed_columns import KeyedColumns, load_kernels
from elastic.operators.columns.keyed_rows import KeyedRows
from elastic.operators.columns.row_store import RowStore

__all__ = ["KeyedColumns", "KeyedRows", "RowStore", "load_kernels"]
