"""Codec "mapping": a dict of scalars as two Arrow columns; smaller than a pickle and several times as fast."""

from itertools import islice
from types import NoneType
from typing import Any

import pyarrow as pa

from storage.codec import arrow_table
from storage.codec.payload import Codec, Payload

_KEY_TYPES = {str: pa.string(), int: pa.int64(), bytes: pa.binary()}
_VALUE_TYPES = {**_KEY_TYPES, float: pa.float64(), bool: pa.bool_(), NoneType: pa.null()}

_SAMPLE = 1_000  # entries from which the size of all is estimated


def encode(value: object) -> Payload | None:
    """Encode columns `key` and `value` in the dict's order, if keys have one type, and values one type or None."""
    # Exactly a dict, and exactly these scalars: subclasses such as Counter, IntEnum or numpy's float would be lost.
    if type(value) is not dict:
        return None
    key_type = _KEY_TYPES.get(_only(set(map(type, value)), str))
    value_type = _VALUE_TYPES.get(_only(set(map(type, value.values())) - {NoneType}, NoneType))
    if key_type is None or value_type is None:
        return None
    try:
        columns = {"key": pa.array(list(value), key_type), "value": pa.array(list(value.values()), value_type)}
    except (OverflowError, UnicodeEncodeError):  # integers beyond 64 bits, and text that has no UTF-8
        return None
    return arrow_table.encode_stream(pa.table(columns), "table")


def _only(types: set[type], if_none: type) -> type:
    """Return the one type in a set; `object`, which has no Arrow type here, if there are several."""
    return types.pop() if len(types) == 1 else object if types else if_none


def decode(data: memoryview, kind: str) -> Any:
    table = arrow_table.decode(data, kind)
    return dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def estimate_size(value: object) -> int | None:
    if type(value) is not dict:
        return None
    sample = list(islice(value.items(), _SAMPLE))
    if not all(type(key) in _KEY_TYPES and type(entry) in _VALUE_TYPES for key, entry in sample):
        return None
    taken = sum(_estimate_bytes(key) + _estimate_bytes(entry) for key, entry in sample)
    return taken * len(value) // max(len(sample), 1)


def _estimate_bytes(scalar: object) -> int:
    return 4 + len(scalar) if isinstance(scalar, str | bytes) else 8


CODEC = Codec(encode, decode, estimate_size)
