"""Rows as Kafka records: JSON of all columns, or the columns of Spark's Kafka sink as they are."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from elastic.errors import UnknownColumn
from elastic.results.kafka.records import Record, describe, encode

ORIGIN: dict[str, Any] = {"_batch": pa.array([7], pa.int64()), "_task": pa.array([3], pa.int32())}


def only(rows: pa.Table, *key: str) -> Record:
    (record,) = encode(rows, "topic", key)
    return record


def test_a_row_is_a_json_object_without_its_origin() -> None:
    record = only(pa.table({"word": ["hello"], "count": [2], "none": pa.array([None], pa.string()), **ORIGIN}))
    assert record == Record("topic", None, b'{"word":"hello","count":2,"none":null}')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), '"2024-05-06T07:08:09+00:00"'),
        (date(2024, 5, 6), '"2024-05-06"'),
        (Decimal("1.10"), '"1.10"'),
        (b"\x00\xff", '"AP8="'),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_values_without_json_of_their_own_are_text(value: object, text: str) -> None:
    assert (only(pa.table({"v": [value]})).value or b"").decode() == f'{{"v":{text}}}'


def test_structs_lists_and_maps_are_objects_and_arrays() -> None:
    kind = pa.struct([("list", pa.list_(pa.float64())), ("map", pa.map_(pa.string(), pa.int64()))])
    row = {"list": [1.5, float("inf")], "map": [("a", 1)]}
    value = only(pa.table({"v": pa.array([row], kind)})).value
    assert json.loads(value or b"") == {"v": {"list": [1.5, "Infinity"], "map": {"a": 1}}}


@pytest.mark.parametrize(
    ("value", "key"), [("hello", b"hello"), (b"\x00", b"\x00"), (7, b"7"), (None, None), ([1, 2], b"[1,2]")]
)
def test_a_key_column_is_the_key_of_the_record(value: object, key: bytes | None) -> None:
    assert only(pa.table({"k": [value], "n": [1]}), "k").key == key


def test_several_key_columns_are_an_object() -> None:
    assert only(pa.table({"a": ["x"], "b": [1], "n": [2]}), "a", "b").key == b'{"a":"x","b":1}'


def test_a_key_column_that_is_missing_is_named() -> None:
    with pytest.raises(UnknownColumn, match="'wort'"):
        only(pa.table({"word": ["hello"]}), "wort")


def test_columns_of_sparks_sink_are_the_record() -> None:
    headers = pa.array(
        [[{"key": "h", "value": b"1"}]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    columns = {"key": [b"k"], "value": ["text"], "headers": headers, "partition": [1], "topic": ["other"], **ORIGIN}
    assert only(pa.table(columns)) == Record("other", b"k", b"text", [("h", b"1")], 1, names_topic=True)


def test_a_row_without_a_topic_goes_to_that_of_the_sink() -> None:
    rows = pa.table({"value": ["v"], "topic": pa.array([None], pa.string())})
    assert only(rows) == Record("topic", None, b"v", [], None, names_topic=False)


@pytest.mark.parametrize("columns", [{"key": ["a"], "value": [1]}, {"value": ["a"], "more": [1]}, {"key": ["a"]}])
def test_other_columns_are_json(columns: dict[str, Any]) -> None:
    assert (only(pa.table(columns)).value or b"").startswith(b"{")


def test_a_named_key_column_asks_for_json() -> None:
    assert only(pa.table({"key": ["k"], "value": ["v"]}), "key") == Record("topic", b"k", b'{"key":"k","value":"v"}')


def test_the_description_of_a_refused_record_is_short_and_says_where_it_came_from() -> None:
    described = json.loads(describe(Record("topic", b"k", b"v" * 10_000_000), 7, 3, "too large"))
    assert described["value"] == "v" * 1_000
    assert (described["topic"], described["batch"], described["row"]) == ("topic", 7, 3)
    assert (described["bytes"], described["error"], described["key"]) == (10_000_001, "too large", "k")


def test_rows_keep_their_order() -> None:
    rows = pa.table({"n": list(range(25_000))})
    assert [json.loads(record.value or b"")["n"] for record in encode(rows, "topic")] == list(range(25_000))
