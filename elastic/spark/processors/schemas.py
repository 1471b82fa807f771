"""Schemas of states and outputs, as Spark declares them: DDL or a `StructType`. Parsed without a JVM."""

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from elastic.errors import InvalidJob, UnsupportedProcessor
from elastic.operators.schemas import to_schema

OUTPUT_ZONE = "UTC"  # Spark takes output times without a zone as UTC, in its row form
_SIMPLE = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)


def to_struct(declared: StructType | str, what: str) -> StructType:
    """Return a schema as a `StructType`; a type alone, such as "int", is one column named `value`.

    Raises `InvalidJob` for invalid DDL, and `UnsupportedProcessor` for a type that states cannot hold yet.
    """
    if isinstance(declared, str):
        declared = from_arrow_schema(_parse(declared))
    if not isinstance(declared, StructType):
        raise InvalidJob(
            f"the schema of {what} is a {type(declared).__name__}. Give a StructType, or text such as 'id string'."
        )
    for kind in _types(declared):
        if not isinstance(kind, (*_SIMPLE, ArrayType, MapType, StructType)):
            raise UnsupportedProcessor(f"type {kind.simpleString()} in {what}", "Use a string or a binary instead")
    return declared


def to_arrow(struct: StructType) -> pa.Schema:
    """Return the schema of output rows."""
    return to_arrow_schema(struct, timezone=OUTPUT_ZONE).remove_metadata()


def to_text(struct: StructType) -> str:
    """Return a schema as text, from which `from_text` restores it."""
    return struct.json()


def from_text(text: str) -> StructType:
    return StructType.fromJson(json.loads(text))


def is_nested(struct: StructType) -> bool:
    """Return whether a column is an array, a map or a struct."""
    return any(isinstance(field.dataType, ArrayType | MapType | StructType) for field in struct)


def _parse(text: str) -> pa.Schema:
    try:
        return to_schema(text)
    except InvalidJob:
        if len(text.split()) != 1:
            raise
    return to_schema(f"value {text}")


def _types(kind: DataType) -> Iterator[DataType]:
    yield kind
    if isinstance(kind, StructType):
        for field in kind:
            yield from _types(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _types(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _types(kind.keyType)
        yield from _types(kind.valueType)
