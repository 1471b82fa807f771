"""Rows as Kafka records: the columns of Spark's Kafka sink as they are, and everything else as JSON.

Independent of a client, so that it is tested without one.
"""

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.errors import UnknownColumn
from elastic.results.objects import ORIGIN

_ROWS = 10_000  # rows that are Python objects at a time
_DESCRIBED_BYTES = 1_000  # of key and value of a refused record
_SPARK_COLUMNS = frozenset(("key", "value", "headers", "partition", "topic"))
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)

_Row = Mapping[str, Any]


class Record(NamedTuple):
    """A record; `partition` None leaves the choice to the client, which hashes the key."""

    topic: str | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    names_topic: bool = False  # whether the row chose the topic


def encode(rows: pa.Table, topic: str | None, key: Sequence[str] = ()) -> Iterator[Record]:
    """Return the records of the rows, in their order.

    Rows whose columns are among key, value, headers, partition and topic, with a `value` of text or bytes, are records
    already, unless `key` names key columns. Of all others the value is a JSON object, and the key is that of the
    columns `key`. Where a row came from (`_batch`, `_task`) is not part of its record.
    """
    rows = rows.drop_columns([name for name in ORIGIN.names if name in rows.column_names])
    for name in key:
        if name not in rows.column_names:
            raise UnknownColumn(name, rows.column_names)
    to_record = _from_spark_columns(topic) if not key and _is_in_spark_columns(rows.schema) else _to_json(topic, key)
    for part in rows.to_batches(max_chunksize=_ROWS):
        for row in part.to_pylist(maps_as_pydicts="strict"):
            yield to_record(row)


def describe(record: Record, batch: int, row: int, why: str) -> bytes:
    """Return what is left of a record that Kafka refuses: where it came from, why it is refused, how it begins."""
    key, value = (None if part is None else part[:_DESCRIBED_BYTES].decode(errors="replace") for part in record[1:3])
    size = len(record.key or b"") + len(record.value or b"")
    described = {"topic": record.topic, "partition": record.partition, "batch": batch, "row": row, "bytes": size}
    return _dump({**described, "error": why, "key": key, "value": value})


def _is_in_spark_columns(schema: pa.Schema) -> bool:
    names = set(schema.names)
    return "value" in names and names <= _SPARK_COLUMNS and any(is_(schema.field("value").type) for is_ in _TEXT)


def _from_spark_columns(topic: str | None) -> Callable[[_Row], Record]:
    def to_record(row: _Row) -> Record:
        headers = [(header["key"], header["value"]) for header in row.get("headers") or ()]
        own = row.get("topic")
        key, value = _to_bytes(row.get("key")), _to_bytes(row["value"])
        return Record(own or topic, key, value, headers, row.get("partition"), bool(own))

    return to_record


def _to_json(topic: str | None, key: Sequence[str]) -> Callable[[_Row], Record]:
    single = key[0] if len(key) == 1 else None

    def to_record(row: _Row) -> Record:
        if single is not None:
            record_key = _to_bytes(row[single])
        else:
            record_key = _dump({name: row[name] for name in key}) if key else None
        return Record(topic, record_key, _dump(row))

    return to_record


def _to_bytes(value: Any) -> bytes | None:
    """Return text in UTF-8, bytes as they are, and anything else as JSON."""
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else _dump(value)


def _dump(value: Any) -> bytes:
    try:
        text = json.dumps(value, default=_to_plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # JSON has no infinity and no NaN: like Spark's to_json, write their names
        text = json.dumps(_name_infinite(value), default=_to_plain, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def _to_plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return str(value)  # a number of JSON is often read as a float, which would round it
    raise TypeError(f"{type(value).__name__} has no JSON")


def _name_infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _name_infinite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_name_infinite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
