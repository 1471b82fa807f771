"""Values between a write and a read are what Spark's state store makes of them."""

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row

from elastic.spark.processors.schemas import from_text, to_struct, to_text
from elastic.spark.processors.values import Codec


def through(kind: str, value: Any) -> Any:
    codec = Codec(to_struct(f"v {kind}", "a test"), "v")
    stored = codec.store((value,))
    hash(stored)  # immutable all the way down
    return (codec.load(stored) if codec.load else stored)[0]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", 5, 5),
        ("int", np.int64(5), 5),
        ("int", 2**31, -(2**31)),
        ("int", 2**63, None),
        ("byte", 200, -56),
        ("short", -40_000, 25_536),
        ("long", -(2**63), -(2**63)),
        ("int", 5.0, None),
        ("int", True, None),
        ("int", "5", None),
        ("boolean", np.True_, True),
        ("boolean", 1, None),
        ("double", 1.5, 1.5),
        ("double", np.float32(0.5), 0.5),
        ("double", 1, None),
        ("float", 0.1, 0.10000000149011612),
        ("float", 1e300, float("inf")),
        ("string", "a", "a"),
        ("string", 5, "5"),
        ("string", True, "true"),
        ("string", 100.0, "100.0"),
        ("string", 0.001, "0.001"),
        ("string", 0.0009, "9.0E-4"),
        ("string", 12_345_678.5, "1.23456785E7"),
        ("string", 1e20, "1.0E20"),
        ("string", -0.0, "-0.0"),
        ("string", float("nan"), "NaN"),
        ("string", float("-inf"), "-Infinity"),
        ("string", Decimal("1.50"), "1.50"),
        ("string", [1, None, "a"], "[1, null, a]"),
        ("string", {"a": 1.5, "b": [True]}, "{a=1.5, b=[true]}"),
        ("binary", bytearray(b"a"), b"a"),
        ("binary", "ä", b"\xc3\xa4"),
        ("binary", 1, None),
        ("decimal(5,2)", Decimal("1.005"), Decimal("1.01")),
        ("decimal(5,2)", 1, None),
        ("date", date(2024, 2, 29), date(2024, 2, 29)),
        ("timestamp_ntz", datetime(2024, 1, 1, 12, 0, 0, 7), datetime(2024, 1, 1, 12, 0, 0, 7)),
        ("timestamp", pd.Timestamp(2024, 1, 1), datetime(2024, 1, 1)),
        ("array<int>", [1, None, 2.5], [1, None, None]),
        ("array<int>", np.array([1, 2]), [1, 2]),
        ("array<int>", {1, 2}, None),
        ("map<string,array<int>>", {"a": [1], "b": None}, {"a": [1], "b": None}),
        ("map<string,int>", [("a", 1)], None),
        ("struct<a: int, b: string>", {"b": "x", "a": 1}, Row(a=1, b="x")),
        ("struct<a: int, b: string>", (1, 2), Row(a=1, b="2")),
        ("array<struct<a: date>>", [(date(2024, 1, 1),), None], [Row(a=date(2024, 1, 1)), None]),
        *((kind, None, None) for kind in ("int", "double", "string", "binary", "date", "timestamp", "array<int>")),
        *((kind, None, None) for kind in ("decimal(5,2)", "boolean", "map<string,int>", "struct<a: int>")),
    ],
)
def test_a_value_comes_back_as_its_declared_type(kind: str, value: Any, expected: Any) -> None:
    assert through(kind, value) == expected
    assert type(through(kind, value)) is type(expected)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("double", float("nan")),
        ("float", float("nan")),
        ("array<double>", [float("nan"), 1.0]),
        ("struct<x: double>", (float("nan"),)),
    ],
)
def test_not_a_number_is_one_key_of_a_map_also_after_a_restart(kind: str, key: Any) -> None:
    codec = Codec(to_struct(f"v {kind}", "a test"), "v", are_keys=True)
    stored = pickle.loads(pickle.dumps(codec.store((key,))))  # noqa: S301 - of this test
    assert stored == codec.store((key,))
    assert codec.load is not None
    assert repr(codec.load(stored)) == repr((Row(x=key[0]),) if isinstance(key, tuple) else (key,))


def test_times_with_a_zone_come_back_in_local_time() -> None:
    moment = datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    assert through("timestamp", moment).astimezone(UTC) == moment


@pytest.mark.parametrize(("kind", "value"), [("decimal(3,2)", Decimal("12.3")), ("struct<a: int>", (1, 2))])
def test_values_that_the_store_refuses_are_refused(kind: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"Declare more digits|Give one entry per column"):
        through(kind, value)


@pytest.mark.parametrize("text", ["a int, b array<struct<c: map<string,decimal(9,3)>>>", "t timestamp not null", "int"])
def test_schemas_survive_as_text(text: str) -> None:
    struct = to_struct(text, "a test")
    assert from_text(to_text(struct)) == struct
