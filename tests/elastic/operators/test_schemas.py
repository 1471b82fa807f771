"""Schemas in Spark's DDL."""

import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.operators import to_schema


def test_ddl_becomes_an_arrow_schema() -> None:
    assert to_schema("word string, count long") == pa.schema([("word", pa.string()), ("count", pa.int64())])
    text = "a INT NOT NULL, `odd ``name` decimal(12, 3), t timestamp, n timestamp_ntz, d dec, v varchar(10)"
    assert to_schema(text) == pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False),
            ("odd `name", pa.decimal128(12, 3)),
            ("t", pa.timestamp("us", "UTC")),
            ("n", pa.timestamp("us")),
            ("d", pa.decimal128(10, 0)),
            ("v", pa.string()),
        ]
    )
    nested = "m map<string, array<double>>, s struct<x: int, y: struct<z: binary>>"
    assert to_schema(nested) == pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
            ("s", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.binary())]))])),
        ]
    )


def test_arrow_schemas_and_single_types_are_schemas() -> None:
    schema = pa.schema([("a", pa.int8())])
    assert to_schema(schema) is schema
    assert to_schema(pa.int8()) == pa.schema([("key", pa.int8())])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "word text",
        "word string,",
        "a int b",
        "a array<int",
        "a int, a int",
        "a decimal(x)",
        "a; b",
        "a int not",
    ],
)
def test_a_text_that_is_not_ddl_is_refused(text: str) -> None:
    with pytest.raises(InvalidJob, match="Write it like"):
        to_schema(text)
