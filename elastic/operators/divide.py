"""Dividing the state of a unit by key, so that single keys can move to another unit of their stage.

An operator's state can be divided if the operator

- is stateless or a `KeyedOperator`, whose state is by key already,
- or defines both `part` and `join`,
- or has `KeyedColumns` as its state, with the key columns of the stage among their keys, and handles no timers.

Any other state belongs to the task. Timers need no help from the operator: a timer of a key goes wherever the key goes.
All timers of a `KeyedOperator` are of a key; another operator names the key with `set_timer(..., key=...)`. A timer
without a key, or with one that is not of the stage's key types, belongs to the task and stays. Hence the last
condition above: whether such a timer may stay behind when keys leave is for the operator to say. With `copies_timers`
timers without a key are copied: both units then have them, at the earlier time if both had them before.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.errors import DivisionFailed, IndivisibleState, InvalidKey
from elastic.operators.calls import UnitState
from elastic.operators.columns import KeyedColumns
from elastic.operators.keyed import KeyedOperator
from elastic.operators.keys import to_arrow_keys, to_python_keys
from elastic.operators.operator import Hashes, Operator
from elastic.operators.quarantine import format_traceback
from elastic.operators.timers import Timers
from elastic.routing.hashing import hash_key, hash_keys, is_among


def check_divisible(operator: Operator, stage: str) -> None:
    """Raise `IndivisibleState` if keys cannot be taken out of the state of an operator, which is bound already."""
    obstacle = _find_obstacle(operator)
    if obstacle is not None:
        raise IndivisibleState(stage, type(operator).__name__, obstacle)


def part(operator: Operator, state: UnitState, hashes: Hashes, name: str) -> UnitState:
    """Take the keys with these hashes out of a state, with their timers."""
    try:
        value = operator.part(state, hashes)
    except MemoryError:
        raise
    except Exception as error:  # a user's operator may raise anything
        raise DivisionFailed(name, "part", format_traceback(error)) from error
    return UnitState(value, _part_timers(operator, state.timers, hashes))


def join(operator: Operator, state: UnitState, part: UnitState, name: str) -> None:
    """Put a part of another unit into a state."""
    try:
        operator.join(state, part.value)
    except MemoryError:
        raise
    except Exception as error:  # a user's operator may raise anything
        raise DivisionFailed(name, "join", format_traceback(error)) from error
    if operator.copies_timers:
        part.timers.keep_earlier(state.timers)
    state.timers.join(part.timers)


def _find_obstacle(operator: Operator) -> str | None:
    """Return why keys cannot be taken out of the state; None if they can."""
    kind = type(operator)
    if operator.stateless:
        return None
    is_defined = [kind.part is not Operator.part, kind.join is not Operator.join]
    if all(is_defined):
        return None
    if any(is_defined):
        return f"it defines {'part' if is_defined[0] else 'join'}() but not {'join' if is_defined[0] else 'part'}()"
    try:
        value = operator.initial_state()
    except Exception as error:  # noqa: BLE001 - a user's operator may raise anything
        return f"its initial_state() raised {error!r} before open()"
    if not isinstance(value, KeyedColumns):
        return f"its state, a value of type {type(value).__name__}, belongs to the task"
    for column in operator.key:
        obstacle = _find_obstacle_of_column(operator, value, column)
        if obstacle is not None:
            return obstacle
    if operator.handles_timers:
        return "it handles timers, which may belong to the task"
    return None


def _find_obstacle_of_column(operator: Operator, value: KeyedColumns, column: str) -> str | None:
    if column not in value.key_schema.names:
        return f"the keys of its KeyedColumns do not include the key column {column!r}"
    held = value.key_schema.field(column).type
    routed = operator.input_schema.field(column).type if operator.input_schema is not None else held
    if to_hash_type(held) != to_hash_type(routed):
        return f"its KeyedColumns hold the key column {column!r} as {held}, whose hashes differ from those of {routed}"
    return None


def to_hash_type(kind: pa.DataType) -> pa.DataType:
    """Return a type of the same values and hashes: without a time zone, dictionary or large offsets."""
    if kinds.is_dictionary(kind):
        return to_hash_type(kind.value_type)
    if kinds.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if kinds.is_large_string(kind):
        return pa.string()
    return pa.binary() if kinds.is_large_binary(kind) else kind


def _part_timers(operator: Operator, timers: Timers, hashes: Hashes) -> Timers:
    if not len(timers) or operator.input_schema is None:
        return Timers()
    if operator.copies_timers:
        return timers.copy_of_unit()
    types = [operator.input_schema.field(name).type for name in operator.key]
    if isinstance(operator, KeyedOperator):
        return timers.part(lambda keys: is_among(hash_keys(to_arrow_keys(keys, types)), hashes))
    return timers.part(lambda keys: _mask_declared(keys, types, hashes))


def _mask_declared(keys: list[Any], types: Sequence[pa.DataType], hashes: Hashes) -> NDArray[np.bool_]:
    """Return which keys have one of these hashes; an operator may have given its timers anything as a key."""
    places = [place for place, key in enumerate(keys) if key is not None]
    given = [keys[place] for place in places]
    mask = np.zeros(len(keys), np.bool_)
    try:
        columns = to_arrow_keys(given, types)
        fit = to_python_keys(columns) == given
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        fit = False
    if fit:
        mask[places] = is_among(hash_keys(columns), hashes)
    else:
        known = frozenset(hashes.tolist())
        mask[places] = [_has_hash(key, types, known) for key in given]
    return mask


def _has_hash(key: Any, types: Sequence[pa.DataType], hashes: frozenset[int]) -> bool:
    try:
        return hash_key(*(key if isinstance(key, tuple) and len(types) > 1 else (key,)), types=types) in hashes
    except InvalidKey:
        return False
