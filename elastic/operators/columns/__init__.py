"""Columnar state by key: keys become row numbers, and columns are NumPy arrays by row."""

from elastic.operators.columns.keyed_columns import KeyedColumns

__all__ = ["KeyedColumns"]
