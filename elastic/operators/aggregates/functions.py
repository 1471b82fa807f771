"""Aggregate functions on columns.

    from elastic.operators import functions as F

    Aggregate(bids=F.count(), total=F.sum("price"))

A function is described by its *accumulators*, columns that hold what is known of a group of rows, and two conversions:
`lift` turns every row into accumulators of its own (init and add in one), `finish` turns those of a group into the
result. Accumulators of the same group merge in any order, each by its own rule, so the same description serves rows in
a sender, partials between stages, rows in a state, panes of a window and sessions that grow together.

The functions follow Spark: nulls are ignored, an aggregate of nothing but nulls is null (a count is 0), and NaN is
greater than any other number. Integers wrap around at 64 bits. The sum of floats is rounded, and so depends on the
order of its rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import InvalidJob, UnknownColumn
from elastic.operators.aggregates import hyperloglog
from elastic.operators.kernels import Words
from elastic.routing.hashing import check_key

Column: TypeAlias = NDArray[Any]

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


class Accumulator(Protocol):
    """One column of what is known of groups. Merging is associative and commutative, up to rounding."""

    @property
    def dtype(self) -> str:
        """The NumPy type of the column in a state."""

    @property
    def initial(self) -> Any:
        """The value of a group without rows; merging it changes nothing."""

    @property
    def lifted(self) -> pa.DataType:
        """The type of the column of lifted rows."""

    @property
    def merges_equal_only(self) -> bool:
        """Whether lifted rows can only be merged if they are equal, so that partials are grouped by them, too."""

    def add(self, target: Column, rows: Words, lifted: Column) -> None:
        """Add lifted rows to rows of a state."""

    def merge(self, target: Column, rows: Words, source: Column) -> None:
        """Merge rows of another state into rows of this one."""


_UFUNCS: dict[str, np.ufunc] = {"sum": np.add, "min": np.fmin, "max": np.maximum}


@dataclass(frozen=True)
class Scalar:
    """A number per group, merged by "sum", "min" or "max"."""

    dtype: str
    rule: str
    initial: Any = 0

    merges_equal_only = False

    @property
    def lifted(self) -> pa.DataType:
        return pa.from_numpy_dtype(np.dtype(self.dtype))

    def add(self, target: Column, rows: Words, lifted: Column) -> None:
        with np.errstate(invalid="ignore"):  # NaN is a value like others
            _UFUNCS[self.rule].at(target, rows, lifted)

    def merge(self, target: Column, rows: Words, source: Column) -> None:
        self.add(target, rows, source)


@dataclass(frozen=True)
class Registers:
    """A HyperLogLog sketch per group; a lifted row is the code of one value (see `hyperloglog`)."""

    bits: int

    initial = 0
    merges_equal_only = True

    @property
    def dtype(self) -> str:
        return f"V{1 << self.bits}"

    @property
    def lifted(self) -> pa.DataType:
        return pa.int64()

    def add(self, target: Column, rows: Words, lifted: Column) -> None:
        hyperloglog.update(self.ranks(target), rows, lifted)

    def merge(self, target: Column, rows: Words, source: Column) -> None:
        np.maximum.at(self.ranks(target), rows, self.ranks(source))

    def ranks(self, column: Column) -> hyperloglog.Ranks:
        """Return a column as a matrix with one row of registers per group, a view."""
        return column.view(np.uint8).reshape(len(column), 1 << self.bits)


class AggregateFunction:
    """An aggregate function over the rows of a group; subclass it to write your own."""

    def bind(self, schema: pa.Schema) -> "AggregateFunction":
        """Return this function for rows of a schema; raises `InvalidJob` if it cannot take them."""
        raise NotImplementedError(f"{type(self).__name__} does not define bind. Define it.")

    @property
    def columns(self) -> Sequence[str]:
        """The input columns that the function reads."""
        raise NotImplementedError(f"{type(self).__name__} does not define columns. Define it.")

    @property
    def accumulators(self) -> Sequence[Accumulator]:
        raise NotImplementedError(f"{type(self).__name__} does not define accumulators. Define it.")

    @property
    def result(self) -> pa.DataType:
        raise NotImplementedError(f"{type(self).__name__} does not define result. Define it.")

    def lift(self, rows: pa.Table) -> Sequence[Column]:
        """Return each row as accumulators of its own, a column per accumulator."""
        raise NotImplementedError(f"{type(self).__name__} does not define lift. Define it.")

    def finish(self, columns: Sequence[Column]) -> pa.Array:
        """Return the result of every group."""
        raise NotImplementedError(f"{type(self).__name__} does not define finish. Define it.")


@dataclass(frozen=True)
class _Count(AggregateFunction):
    column: str | None

    def bind(self, schema: pa.Schema) -> "_Count":
        if self.column is not None:
            _type_of(schema, self.column)
        return self

    @property
    def columns(self) -> Sequence[str]:
        return () if self.column is None else (self.column,)

    @property
    def accumulators(self) -> Sequence[Accumulator]:
        return (Scalar("int64", "sum"),)

    @property
    def result(self) -> pa.DataType:
        return pa.int64()

    def lift(self, rows: pa.Table) -> Sequence[Column]:
        if self.column is None:
            return (np.ones(rows.num_rows, np.int64),)
        return (_valid(_array(rows, self.column)).astype(np.int64),)

    def __repr__(self) -> str:
        return "count()" if self.column is None else f"count({self.column!r})"

    def finish(self, columns: Sequence[Column]) -> pa.Array:
        return pa.array(columns[0])


@dataclass(frozen=True)
class _Reduction(AggregateFunction):
    """A sum, minimum or maximum of a column of numbers, beside a mark of the groups that have one."""

    rule: str
    column: str
    kind: pa.DataType | None = None  # of the column, once bound

    def bind(self, schema: pa.Schema) -> "_Reduction":
        kind = _type_of(schema, self.column)
        is_time = kinds.is_timestamp(kind) or kinds.is_date(kind) or kinds.is_boolean(kind)
        if not _is_number(kind) and (self.rule == "sum" or not is_time):
            raise InvalidJob(
                f"{self.rule}({self.column!r}) cannot take values of type {kind}. "
                "Use a column of integers or floats, or cast it before."
            )
        return type(self)(self.rule, self.column, kind)

    @property
    def columns(self) -> Sequence[str]:
        return (self.column,)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64 if kinds.is_floating(self.kind) else np.int64)

    @property
    def accumulators(self) -> Sequence[Accumulator]:
        return (Scalar(self.dtype.name, self.rule, _identity(self.rule, self.dtype)), Scalar("uint8", "max"))

    @property
    def result(self) -> pa.DataType:
        if self.rule == "sum":
            return pa.from_numpy_dtype(self.dtype)
        return self.kind

    def lift(self, rows: pa.Table) -> Sequence[Column]:
        array = _array(rows, self.column)
        is_valid = _valid(array)
        values = _numbers(array).astype(self.dtype, copy=False)
        if array.null_count:
            values = np.where(is_valid, values, self.dtype.type(_identity(self.rule, self.dtype)))
        return values, is_valid.astype(np.uint8)

    def finish(self, columns: Sequence[Column]) -> pa.Array:
        values, is_valid = columns
        array = pa.array(np.where(is_valid == 1, values, 0).astype(values.dtype), mask=is_valid == 0)
        if self.result == array.type:
            return array
        if kinds.is_date32(self.result):
            array = array.cast(pa.int32())
        return array.cast(self.result)

    def __repr__(self) -> str:
        return f"{self.rule}({self.column!r})"


@dataclass(frozen=True)
class _Mean(AggregateFunction):
    column: str

    def bind(self, schema: pa.Schema) -> "_Mean":
        kind = _type_of(schema, self.column)
        if not _is_number(kind):
            raise InvalidJob(f"mean({self.column!r}) cannot take values of type {kind}. Use integers or floats.")
        return self

    @property
    def columns(self) -> Sequence[str]:
        return (self.column,)

    @property
    def accumulators(self) -> Sequence[Accumulator]:
        return (Scalar("float64", "sum", 0.0), Scalar("int64", "sum"))

    @property
    def result(self) -> pa.DataType:
        return pa.float64()

    def lift(self, rows: pa.Table) -> Sequence[Column]:
        array = _array(rows, self.column)
        is_valid = _valid(array)
        values = _numbers(array).astype(np.float64)
        return (np.where(is_valid, values, 0.0) if array.null_count else values), is_valid.astype(np.int64)

    def finish(self, columns: Sequence[Column]) -> pa.Array:
        totals, counts = columns
        return pa.array(totals / np.maximum(counts, 1), mask=counts == 0)

    def __repr__(self) -> str:
        return f"mean({self.column!r})"


@dataclass(frozen=True)
class _ApproxCountDistinct(AggregateFunction):
    column: str
    bits: int

    def bind(self, schema: pa.Schema) -> "_ApproxCountDistinct":
        check_key(schema, [self.column])  # it is hashed like a key
        return self

    @property
    def columns(self) -> Sequence[str]:
        return (self.column,)

    @property
    def accumulators(self) -> Sequence[Accumulator]:
        return (Registers(self.bits),)

    @property
    def result(self) -> pa.DataType:
        return pa.int64()

    def lift(self, rows: pa.Table) -> Sequence[Column]:
        return (hyperloglog.encode(_array(rows, self.column), self.bits),)

    def finish(self, columns: Sequence[Column]) -> pa.Array:
        (column,) = columns
        return pa.array(hyperloglog.estimate(Registers(self.bits).ranks(np.ascontiguousarray(column))))

    def __repr__(self) -> str:
        return f"approx_count_distinct({self.column!r})"


def count(column: str | None = None) -> AggregateFunction:
    """Count the rows of a group, or those whose column is not null."""
    return _Count(column)


def sum(column: str) -> AggregateFunction:  # noqa: A001 - the name that Spark uses
    """Add up a column: integers to a long, floats to a double."""
    return _Reduction("sum", column)


def min(column: str) -> AggregateFunction:  # noqa: A001 - the name that Spark uses
    """Find the least value of a column of numbers, dates, timestamps or booleans."""
    return _Reduction("min", column)


def max(column: str) -> AggregateFunction:  # noqa: A001 - the name that Spark uses
    """Find the greatest value of a column of numbers, dates, timestamps or booleans."""
    return _Reduction("max", column)


def mean(column: str) -> AggregateFunction:
    """Return the mean of a column, as a double."""
    return _Mean(column)


avg = mean


def approx_count_distinct(column: str, rsd: float = 0.05) -> AggregateFunction:
    """Estimate the number of distinct values that are not null, with a relative standard deviation of `rsd`.

    A group takes 512 bytes of state for 0.05, 16 KiB for 0.01: (1.04 / rsd)^2, rounded up to a power of two.
    """
    if not 0 < rsd < 1:
        raise InvalidJob(f"approx_count_distinct cannot have rsd={rsd}. Use a value between 0.005 and 0.25.")
    return _ApproxCountDistinct(column, hyperloglog.bits_for(rsd))


def _type_of(schema: pa.Schema, column: str) -> pa.DataType:
    if column not in schema.names:
        raise UnknownColumn(column, schema.names)
    return schema.field(column).type


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        (kinds.is_integer(kind) and not kinds.is_uint64(kind)) or kinds.is_float32(kind) or kinds.is_float64(kind)
    )


def _identity(rule: str, dtype: np.dtype[Any]) -> Any:
    """Return the value that changes nothing when it is merged by a rule."""
    if rule == "sum":
        return dtype.type(0).item()
    if dtype.kind == "f":
        # A minimum ignores NaN unless there is nothing else, and so does merging with NaN.
        return float("nan") if rule == "min" else float("-inf")
    limits = np.iinfo(dtype)
    return limits.max if rule == "min" else limits.min


def _array(rows: pa.Table, column: str) -> pa.Array:
    array = rows.column(column).combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # several chunks stay if offsets would overflow
        array = pa.concat_arrays(array.chunks)
    return array.dictionary_decode() if kinds.is_dictionary(array.type) else array


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _numbers(array: pa.Array) -> Column:
    """Return a column as numbers, anything for nulls; times as their ticks."""
    kind = array.type
    if kinds.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif kinds.is_date32(kind):
        array = array.view(pa.int32())
    elif kinds.is_timestamp(kind) or kinds.is_date64(kind):
        array = array.view(pa.int64())
    values: Column = (pc.fill_null(array, 0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return values
