"""Encoding of state for storage, and back.

`encode` returns an immutable form that `storage.codec` stores well; `decode` reverses it. Most values are encoded as
they are, so that the codec sees tables, arrays and dicts of scalars and uses its columnar formats. A value that needs
an annotation becomes a dict with the entry `NOTE`.
"""

import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any
from uuid import UUID

import cloudpickle
import numpy as np
import pyarrow as pa

from elastic.operators.columns import KeyedColumns
from elastic.operators.timers import Timers
from storage.errors import UnstorableState

NOTE = "elastic.state"
_VALUE = "value"
_TIMERS = "timers"

_FROZEN = (pa.Table, pa.RecordBatch, pa.Array, pa.ChunkedArray, np.number, np.bool_)
_SCALARS = frozenset({NoneType, bool, int, float, complex, str, bytes, Decimal, date, datetime, time, timedelta, UUID})


def encode(value: Any, timers: Timers, name: str) -> Any:
    """Return a copy for storage: free for Arrow and scalars, in memory for arrays and keyed columns, else a pickle."""
    how, stored = _freeze(value, name)
    if how == "plain" and not len(timers) and not _has_note(value):
        return stored
    if how == "columns" and not len(timers):
        return {NOTE: np.zeros(0, np.uint8), **stored}
    timed = {_TIMERS: timers.to_columns()} if len(timers) else {}
    return {NOTE: how, _VALUE: stored, **timed}


def decode(saved: Any) -> tuple[Any, Timers]:
    """Return the value and the timers, mutable."""
    if not _has_note(saved):
        return _writable(saved), Timers()
    if isinstance(saved[NOTE], np.ndarray):
        return KeyedColumns.from_arrays(saved), Timers()
    timers = Timers.from_columns(saved[_TIMERS]) if _TIMERS in saved else Timers()
    return _DECODERS[saved[NOTE]](saved[_VALUE]), timers


def copy_value(value: Any, name: str) -> Any:
    """Return an independent copy of a value, as cheaply as possible."""
    how, stored = _freeze(value, name)
    return _DECODERS[how](stored)


def _freeze(value: Any, name: str) -> tuple[str, Any]:
    """Return the name of the encoding and the encoded value, which later changes of the value do not affect."""
    if _is_frozen(value):
        return "plain", value
    if type(value) is KeyedColumns:
        return "columns", value.to_arrays()
    if type(value) is np.ndarray and value.dtype.kind != "O":
        return "plain", value.copy()
    if type(value) is dict:
        if _all_frozen(value):
            return "plain", dict(value)
        if all(type(array) is np.ndarray and array.dtype.kind != "O" for array in value.values()):
            return "plain", {key: array.copy() for key, array in value.items()}
    return "pickled", _pickle(value, name)


def _writable(stored: Any) -> Any:
    """Copy arrays, which storage returns read-only; everything else is unchanged."""
    if type(stored) is np.ndarray:
        return np.array(stored)
    if type(stored) is dict and all(type(array) is np.ndarray for array in stored.values()):
        return {key: np.array(array) for key, array in stored.items()}
    return stored


def _unpickle(stored: bytes) -> Any:
    return pickle.loads(stored)  # noqa: S301 - storage returns only objects signed by this application


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "plain": _writable,
    "columns": KeyedColumns.from_arrays,
    "pickled": _unpickle,
}


def _pickle(value: Any, name: str) -> bytes:
    try:
        return bytes(cloudpickle.dumps(value, protocol=5))
    except MemoryError:
        raise
    except Exception as error:  # a user's object may raise anything when it is pickled
        raise UnstorableState(name, "state", type(value), error) from error


def _has_note(saved: Any) -> bool:
    return type(saved) is dict and NOTE in saved


def _is_frozen(value: Any) -> bool:
    """Return whether the value is immutable, so that it needs no copy."""
    if type(value) is tuple:
        return all(map(_is_frozen, value))
    return type(value) in _SCALARS or isinstance(value, _FROZEN)


def _all_frozen(entries: dict[Any, Any]) -> bool:
    """Return whether all values of a dict are immutable; fast if all are scalars."""
    mixed = set(map(type, entries.values())) - _SCALARS
    return not mixed or all(map(_is_frozen, entries.values()))
