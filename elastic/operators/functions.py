"""Aggregate functions by the names that Spark uses: `from elastic.operators import functions as F`."""

from elastic.operators.aggregates.functions import (
    Accumulator,
    AggregateFunction,
    Registers,
    Scalar,
    approx_count_distinct,
    avg,
    count,
    max,  # noqa: A004 - the names that Spark uses
    mean,
    min,  # noqa: A004 - the names that Spark uses
    sum,  # noqa: A004 - the names that Spark uses
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
