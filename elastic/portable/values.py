"""Python values as bytes without pickle: a tree of JSON, and buffers behind it. Reading it runs no code from the data.

    "EV1" | length of the JSON u32 | JSON | buffers, each at a multiple of 8 bytes

Text, booleans, None, small integers and finite floats are themselves; everything else is a list that begins with
a tag. Structures of the engine, whose arrays refer to each other, are read from trusted bytes only.
"""

import json
import math
import struct
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from elastic.operators.aggregates.panes import PaneState
from elastic.operators.aggregates.sessions import SessionState
from elastic.operators.columns import KeyedColumns, KeyedRows, RowStore
from elastic.operators.joins.stream_join import JoinState

_MAGIC = b"EV1"
_LENGTH = struct.Struct("<I")
_ALIGNMENT = 8
_LARGEST_JSON_INTEGER = 1 << 53
_PLAIN_KINDS = "biufcmMSUV"
_STRUCTURES: dict[str, type[Any]] = {kind.__name__: kind for kind in (KeyedRows, PaneState, SessionState, JoinState)}


class Unencodable(TypeError):
    """A value of a type that has no encoding without pickle."""


class Undecodable(ValueError):
    """Bytes that are no encoded value."""


class Untrusted(Undecodable):
    """Bytes with a structure of the engine, which only trusted bytes may have."""


def encode(value: Any) -> bytes:
    """Return the value as bytes; raises `Unencodable`."""
    buffers: list[bytes] = []
    try:
        tree = json.dumps(_Encoder(buffers).encode(value), separators=(",", ":"), allow_nan=False).encode()
    except (UnicodeEncodeError, RecursionError) as cause:
        raise Unencodable(str(cause)) from cause
    head = _pad(_MAGIC + _LENGTH.pack(len(tree)) + tree)
    return head + b"".join(map(_pad, buffers))


def decode(data: bytes, *, trusted: bool = False) -> Any:
    """Return the value; raises `Undecodable`, or `Untrusted` for structures of the engine in bytes of others."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise Undecodable("it does not begin as an encoded value does")
    try:
        begin = len(_MAGIC) + _LENGTH.size
        (length,) = _LENGTH.unpack(data[len(_MAGIC) : begin])
        tree = json.loads(data[begin : begin + length])
        return _Decoder(memoryview(data)[begin + length + -(begin + length) % _ALIGNMENT :], trusted).decode(tree)
    except Undecodable:
        raise
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
        struct.error,
        pa.ArrowException,
    ) as error:
        raise Undecodable(f"{type(error).__name__}: {error}") from error


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


class _Encoder:
    """Turns values into trees; collects their buffers."""

    def __init__(self, buffers: list[bytes]) -> None:
        self._buffers = buffers
        self._end = 0

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            if kind is str:
                value.encode()  # refuses half a surrogate pair
            return value
        if kind is int:
            return value if abs(value) < _LARGEST_JSON_INTEGER else ["i", str(value)]
        if kind is float:
            return value if math.isfinite(value) else ["f", repr(value)]
        if kind in _ENCODERS:
            return _ENCODERS[kind](self, value)
        if isinstance(value, np.generic) and value.dtype.kind in _PLAIN_KINDS:
            return ["n", value.dtype.str, self.buffer(value.tobytes())]
        if kind.__name__ in _STRUCTURES and kind is _STRUCTURES[kind.__name__]:
            return ["o", kind.__name__, self.encode(dict(vars(value)))]
        raise Unencodable(f"{kind.__module__}.{kind.__qualname__}")

    def many(self, values: Any) -> list[Any]:
        return [self.encode(value) for value in values]

    def buffer(self, data: bytes) -> list[int]:
        """Return the place of a buffer."""
        place = [self._end, len(data)]
        self._buffers.append(data)
        self._end += len(data) + -len(data) % _ALIGNMENT
        return place

    def array(self, value: np.ndarray[Any, Any]) -> Any:
        if (
            value.dtype.kind not in _PLAIN_KINDS
            or value.dtype.names is not None
            or np.dtype(value.dtype.str) != value.dtype
        ):
            raise Unencodable(f"a NumPy array of type {value.dtype}")
        return ["a", value.dtype.str, list(value.shape), self.buffer(value.tobytes())]

    def table(self, tag: str, value: Any) -> Any:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write(value)
        return [tag, self.buffer(sink.getvalue().to_pybytes())]

    def moment(self, value: datetime) -> Any:
        if value.tzinfo is not None and type(value.tzinfo) is not timezone:
            raise Unencodable(f"a datetime in {value.tzinfo!r}")
        return ["dt", value.isoformat(), value.fold]


_ENCODERS: dict[type, Callable[[_Encoder, Any], Any]] = {
    list: lambda e, v: ["l", e.many(v)],
    tuple: lambda e, v: ["t", e.many(v)],
    dict: lambda e, v: ["d", [[e.encode(key), e.encode(entry)] for key, entry in v.items()]],
    set: lambda e, v: ["s", e.many(v)],
    frozenset: lambda e, v: ["fs", e.many(v)],
    deque: lambda e, v: ["dq", e.many(v), v.maxlen],
    Counter: lambda e, v: ["ct", [[e.encode(key), e.encode(entry)] for key, entry in v.items()]],
    OrderedDict: lambda e, v: ["od", [[e.encode(key), e.encode(entry)] for key, entry in v.items()]],
    bytes: lambda e, v: ["b", e.buffer(v)],
    bytearray: lambda e, v: ["ba", e.buffer(bytes(v))],
    complex: lambda _, v: ["c", repr(v.real), repr(v.imag)],
    Decimal: lambda _, v: ["dec", str(v)],
    date: lambda _, v: ["date", v.isoformat()],
    datetime: _Encoder.moment,
    time: lambda _, v: ["time", v.isoformat()],
    timedelta: lambda _, v: ["td", v.days, v.seconds, v.microseconds],
    UUID: lambda _, v: ["uuid", v.hex],
    np.ndarray: _Encoder.array,
    pa.Table: lambda e, v: e.table("T", v),
    pa.RecordBatch: lambda e, v: e.table("R", v),
    KeyedColumns: lambda e, v: ["K", e.encode(v.to_arrays())],
    RowStore: lambda e, v: ["rows", e.encode(v.__getstate__())],
}


class _Decoder:
    """Turns trees into values."""

    def __init__(self, buffers: memoryview, trusted: bool) -> None:
        self._buffers = buffers
        self._trusted = trusted

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, list):
            return tree
        tag, *rest = tree
        if tag not in _DECODERS:
            raise Undecodable(f"it has the unknown tag {tag!r}")
        return _DECODERS[tag](self, *rest)

    def many(self, trees: Any) -> list[Any]:
        return [self.decode(tree) for tree in trees]

    def pairs(self, trees: Any) -> list[tuple[Any, Any]]:
        return [(self.decode(key), self.decode(entry)) for key, entry in trees]

    def buffer(self, place: Any) -> bytes:
        begin, size = place
        if not 0 <= begin <= begin + size <= len(self._buffers):
            raise Undecodable("a buffer lies outside of it")
        return bytes(self._buffers[begin : begin + size])

    def array(self, kind: str, shape: list[int], place: Any) -> Any:
        dtype = np.dtype(str(kind))
        if dtype.kind not in _PLAIN_KINDS or dtype.names is not None:
            raise Undecodable(f"it has an array of type {kind}")
        return np.frombuffer(self.buffer(place), dtype).reshape(shape).copy()

    def table(self, place: Any) -> pa.Table:
        with pa.ipc.open_stream(self.buffer(place)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table

    def structure(self, name: str, tree: Any) -> Any:
        self.require_trust(name)
        return _STRUCTURES[name](**self.decode(tree))

    def columns(self, tree: Any) -> KeyedColumns:
        self.require_trust("KeyedColumns")
        return KeyedColumns.from_arrays(self.decode(tree))

    def rows(self, tree: Any) -> RowStore:
        self.require_trust("RowStore")
        store = RowStore.__new__(RowStore)
        store.__setstate__(self.decode(tree))
        return store

    def require_trust(self, name: str) -> None:
        if not self._trusted:
            raise Untrusted(name)


_DECODERS: dict[str, Callable[..., Any]] = {
    "i": lambda _, text: int(text),
    "f": lambda _, text: float(text),
    "l": _Decoder.many,
    "t": lambda d, trees: tuple(d.many(trees)),
    "d": lambda d, trees: dict(d.pairs(trees)),
    "s": lambda d, trees: set(d.many(trees)),
    "fs": lambda d, trees: frozenset(d.many(trees)),
    "dq": lambda d, trees, longest: deque(d.many(trees), longest),
    "ct": lambda d, trees: Counter(dict(d.pairs(trees))),
    "od": lambda d, trees: OrderedDict(d.pairs(trees)),
    "b": _Decoder.buffer,
    "ba": lambda d, place: bytearray(d.buffer(place)),
    "c": lambda _, real, imag: complex(float(real), float(imag)),
    "dec": lambda _, text: Decimal(text),
    "date": lambda _, text: date.fromisoformat(text),
    "dt": lambda _, text, fold: datetime.fromisoformat(text).replace(fold=fold),
    "time": lambda _, text: time.fromisoformat(text),
    "td": lambda _, days, seconds, micros: timedelta(days, seconds, micros),
    "uuid": lambda _, text: UUID(hex=text),
    "a": _Decoder.array,
    "n": lambda d, kind, place: d.array(kind, [1], place)[0],
    "T": _Decoder.table,
    "R": lambda d, place: d.table(place).to_batches()[0] if place else None,
    "K": _Decoder.columns,
    "rows": _Decoder.rows,
    "o": _Decoder.structure,
}
