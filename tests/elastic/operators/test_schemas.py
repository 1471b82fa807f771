"""DDL as Spark writes it."""

import pyarrow as pa
import pytest

from elastic.errors import InvalidJob
from elastic.operators import schema_of


def test_ddl_becomes_an_arrow_schema() -> None:
    assert schema_of("word string, count long") == pa.schema([("word", pa.string()), ("count", pa.int64())])
    text = "a INT NOT NULL, `odd ``name` decimal(12, 3), t timestamp, n timestamp_ntz, d dec, v varchar(10)"
    assert schema_of(text) == pa.schema(
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
    assert schema_of(nested) == pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
            ("s", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.binary())]))])),
        ]
    )


def test_arrow_schemas_and_single_types_are_schemas() -> None:
    schema = pa.schema([("a", pa.int8())])
    assert schema_of(schema) is schema
    assert schema_of(pa.int8()) == pa.schema([("key", pa.int8())])


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
def test_what_is_no_ddl_is_refused(text: str) -> None:
    with pytest.raises(InvalidJob, match="Write it like"):
        schema_of(text)
