"""What both sources do alike: share objects out to tasks, and give Spark exactly the columns it expects."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from elastic.results import PLACE

_PARTITION_BYTES = 16 << 20  # a second of work or so: a Spark task costs some ten milliseconds
_REQUEST_BYTES = 256 << 10  # what could be read in the time that asking for one more object takes
_ARROW_ROWS = 65_536  # of a record batch; Spark works on one at a time


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_Object = TypeVar("_Object", bound=_Sized)


def shared_out(objects: Iterable[_Object]) -> list[list[_Object]]:
    """Neighbours together, as many as one task should read."""
    shares: list[list[_Object]] = []
    room = 0
    for found in objects:
        cost = found.size + _REQUEST_BYTES
        if cost > room or not shares:
            shares.append([])
            room = _PARTITION_BYTES
        shares[-1].append(found)
        room -= cost
    return shares


def spark_schema(columns: pa.Schema) -> StructType:
    """The columns and their place, `_batch` and `_task`, as Spark's types."""
    return from_arrow_schema(pa.schema([*columns, *PLACE]))


def as_spark_expects(rows: pa.Table, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Record batches of exactly these columns; one that is missing is null."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in wanted
    ]
    yield from pa.Table.from_arrays(columns, schema=wanted).to_batches(_ARROW_ROWS)
