"""The initial state of a processor: rows beside those of the first batch, in a column of their own.

They are in the log of the first batch, so they are processed exactly once, in the unit of their key, before its rows.
"""

import pyarrow as pa

from elastic.errors import InvalidJob, UnknownColumn
from elastic.spark.processors.operator import INITIAL


def check_initial(initial: pa.Schema, key: tuple[str, ...], schema: pa.Schema) -> None:
    """Raise unless the initial state has the key columns of the stream, with their types."""
    for column in key:
        if column not in initial.names:
            raise UnknownColumn(column, initial.names)
        if column in schema.names and initial.field(column).type != schema.field(column).type:
            raise InvalidJob(
                f"key column {column!r} is {initial.field(column).type} in the initial state and "
                f"{schema.field(column).type} in the stream. Cast one of them."
            )


def add_empty_initial(rows: pa.Table, initial: pa.Schema) -> pa.Table:
    """Return rows of the stream with the column of the initial state, null."""
    kind = pa.struct(list(initial.remove_metadata()))
    nullable = pa.schema([field.with_nullable(True) for field in rows.schema])
    return rows.cast(nullable).append_column(pa.field(INITIAL, kind), pa.nulls(rows.num_rows, kind))


def to_initial_rows(initial: pa.Table, key: tuple[str, ...], schema: pa.Schema) -> pa.Table:
    """Return rows of an initial state in the schema of the stream: their key, nulls, and themselves as a struct."""
    check_initial(initial.schema, key, schema)
    initial = initial.combine_chunks()
    columns = [
        initial.column(field.name) if field.name in key else pa.nulls(initial.num_rows, field.type) for field in schema
    ]
    rows = pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))
    return rows.append_column(
        pa.field(INITIAL, pa.struct(list(initial.schema.remove_metadata()))),
        pa.chunked_array([initial.to_struct_array().combine_chunks()]),
    )
