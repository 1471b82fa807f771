"""Helpers of both sources: pack objects into partitions, and convert tables to the columns that Spark expects."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from elastic.results import ORIGIN

_PARTITION_BYTES = 16 << 20  # about a second of work; a Spark task costs some ten milliseconds
_REQUEST_BYTES = 256 << 10  # what could be read in the time that a request for one more object takes
_ARROW_ROWS = 65_536  # of a record batch; Spark works on one at a time


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_Object = TypeVar("_Object", bound=_Sized)


def pack_partitions(objects: Iterable[_Object]) -> list[list[_Object]]:
    """Return the objects in order, grouped into as many as one task should read."""
    partitions: list[list[_Object]] = []
    room = 0
    for one in objects:
        cost = one.size + _REQUEST_BYTES
        if cost > room or not partitions:
            partitions.append([])
            room = _PARTITION_BYTES
        partitions[-1].append(one)
        room -= cost
    return partitions


def to_spark_schema(columns: pa.Schema) -> StructType:
    """Return the columns and their origin, `_batch` and `_task`, as Spark's types."""
    return from_arrow_schema(pa.schema([*columns, *ORIGIN]))


def to_record_batches(rows: pa.Table, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield record batches of exactly these columns; a missing column is null."""
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in arrow_schema
    ]
    yield from pa.Table.from_arrays(columns, schema=arrow_schema).to_batches(_ARROW_ROWS)
