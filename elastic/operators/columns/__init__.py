"""Columnar state by key: keys become row numbers, and columns are NumPy arrays by row."""

from elastic.operators.columns.keyed_columns import KeyedColumns, load_kernels

__all__ = ["KeyedColumns", "load_kernels"]
