"""Rows in the formats that operators take and emit."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from elastic.errors import InvalidJob, MissingPackage

INPUT_FORMATS = ("arrow", "pandas", "rows")


def check_input_format(name: str) -> None:
    if name not in INPUT_FORMATS:
        raise InvalidJob(f"unknown input_format {name!r}. Use one of {', '.join(INPUT_FORMATS)}.")
    if name == "pandas":
        _import_pandas()


def to_input_format(rows: pa.Table, input_format: str) -> Any:
    """Convert a table to the input format of an operator."""
    if input_format == "pandas":
        return rows.to_pandas()
    return rows if input_format == "arrow" else rows.to_pylist()


def fill_new_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with all columns of a schema: nulls in those that are newer than the logged rows."""
    rows = match_nullability(rows, schema)
    if rows.num_columns >= len(schema):
        return rows
    for field in schema:
        if field.name not in rows.schema.names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names)


def match_nullability(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows whose columns may be null where those of the schema may; costs no copy.

    Spark knows of some columns only when it runs a batch that they cannot be null. Arrow does not join such a column
    with the same one from elsewhere.
    """
    fields = [
        field.with_nullable(schema.field(field.name).nullable) if field.name in schema.names else field
        for field in rows.schema
    ]
    if all(one.nullable == other.nullable for one, other in zip(fields, rows.schema, strict=True)):
        return rows
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields, rows.schema.metadata))


def concat_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables without copying; a column may be null if it may in one of them."""
    if len(tables) == 1:
        return tables[0]
    first, *others = tables
    if any(other.schema != first.schema for other in others):
        required = {
            field.name for field in first.schema if all(not table.schema.field(field.name).nullable for table in tables)
        }
        schema = pa.schema([field.with_nullable(field.name not in required) for field in first.schema])
        tables = [match_nullability(table, schema) for table in tables]
    return pa.concat_tables(tables)


def slice_rows(rows: Any, begin: int, end: int) -> Any:
    """Return rows begin..end-1 of any input format, without copying them."""
    if isinstance(rows, pa.Table):
        return rows.slice(begin, end - begin)
    return rows[begin:end] if isinstance(rows, list) else rows.iloc[begin:end]


def is_frame(rows: Any) -> bool:
    """Return whether these rows are a pandas DataFrame, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(rows, pandas.DataFrame)


def is_one_row(rows: Any) -> bool:
    return isinstance(rows, Mapping | tuple)


def as_table(rows: Any, schema: pa.Schema, *, complete: bool = False) -> pa.Table:
    """Convert emitted rows to a table of the declared schema; raises `ValueError` or `TypeError` if that is impossible.

    With `complete`, a dict that lacks a column is refused; otherwise the column is null.
    """
    if is_one_row(rows):
        rows = [rows]
    if isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif isinstance(rows, pa.Table):
        table = rows
    elif is_frame(rows):
        table = pa.Table.from_pandas(rows, preserve_index=False)
    elif isinstance(rows, list):
        return _table_of_rows(rows, schema, complete)
    else:
        raise TypeError(f"expected tables, DataFrames, or lists of dicts or tuples, got a {type(rows).__name__}")
    if table.schema.equals(schema):
        return table
    _check_names(table.schema.names, schema.names)
    return table.select(schema.names).replace_schema_metadata(schema.metadata).cast(schema)


def _table_of_rows(rows: Sequence[Any], schema: pa.Schema, complete: bool) -> pa.Table:
    names = schema.names
    known = set(names)
    columns: list[Iterable[Any]] = [[] for _ in names]
    if rows and all(issubclass(kind, tuple) for kind in set(map(type, rows))):
        odd = set(map(len, rows)) - {len(names)}
        if odd:
            raise ValueError(f"a tuple has {min(odd)} values for {len(names)} columns")
        columns = list(zip(*rows, strict=True))
    elif all(isinstance(row, Mapping) for row in rows):
        strange = next((row for row in rows if not row.keys() <= known), None)
        if strange is not None:
            raise ValueError(f"a row has undeclared columns {sorted(set(strange) - known, key=str)}")
        lacking = next((row for row in rows if len(row) < len(known)), None)
        if complete and lacking is not None:
            raise ValueError(f"a row lacks the columns {sorted(known - set(lacking))}; write a null as None")
        columns = [[row.get(name) for row in rows] for name in names]
    else:
        raise TypeError("a list of rows must hold only dicts, or only tuples")
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    _check_nulls(arrays, schema)
    return pa.Table.from_arrays(arrays, schema=schema)


def _check_names(given: Sequence[str], wanted: Sequence[str]) -> None:
    missing, extra = set(wanted) - set(given), set(given) - set(wanted)
    if missing or extra or len(given) != len(wanted):
        raise ValueError(f"expected columns {list(wanted)}, got {list(given)}")


def _check_nulls(arrays: Sequence[pa.Array], schema: pa.Schema) -> None:
    for array, field in zip(arrays, schema, strict=True):
        if array.null_count and not field.nullable:
            raise ValueError(f"column {field.name!r} has nulls but is declared not null")


def as_json(row: Mapping[str, Any]) -> str:
    """Return a row as JSON for messages; values that JSON lacks become strings."""
    return json.dumps(row, default=lambda value: value.hex() if isinstance(value, bytes) else str(value))


def _import_pandas() -> None:
    try:
        import pandas  # noqa: F401 - a large package that most operators do not need
    except ImportError as cause:
        raise MissingPackage("input_format 'pandas'", "pandas", "pandas") from cause
