"""Aggregate functions by the names that Spark uses: `from elastic.operators import functions as F`."""

from elastic.operators.aggregates.functions import (
    Accumulator,
    AggregateFunction,
    Registers,
    Scalar,
    approx_count_distinct,
    avg,
    count,
    max,
    mean,
    min,
    sum,
)

__all__ = [
    "Accumulator",
    "AggregateFunction",
    "Registers",
    "Scalar",
    "approx_count_distinct",
    "avg",
    "count",
    "max",
    "mean",
    "min",
    "sum",
]
