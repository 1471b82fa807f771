"""The timers of a stage as rows and back: those of a key have the key's columns, the others name their task."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from elastic.operators.keys import to_arrow_keys, to_python_keys
from elastic.operators.timers import KINDS, Timers
from elastic.portable import values
from storage.state import UnitId

KEYED, OWNER = "_keyed", "_key"
_FIXED = pa.schema(
    [
        ("_task", pa.int32()),
        ("_guests", pa.bool_()),
        ("_kind", pa.string()),
        ("_name", pa.string()),
        ("_at_ms", pa.int64()),
        (KEYED, pa.bool_()),
        (OWNER, pa.large_binary()),  # the key of a timer that is not of the key columns, encoded
    ]
)


def timer_schema(fields: Sequence[pa.Field]) -> pa.Schema:
    return pa.schema([*_FIXED, *(field.with_nullable(True) for field in fields)])


def timer_rows(
    unit: UnitId, timers: Timers, fields: Sequence[pa.Field], *, by_key: bool, always: bool = False
) -> pa.Table:
    """Return one row per timer of a unit; with `by_key`, those whose key is of the key columns have it there.

    `always`: all timers are of a key, which may be the null.
    """
    items = [(kind, *item) for kind in KINDS for item in timers.items(kind)]
    types = [field.type for field in fields]
    keyed = [always or (by_key and _is_key(key, types)) for _, _, key, _ in items]
    columns = _columns_of(
        [key if is_keyed else None for (_, _, key, _), is_keyed in zip(items, keyed, strict=True)], types
    )
    fixed = [
        pa.array([unit.task] * len(items), pa.int32()),
        pa.array([unit.guests] * len(items), pa.bool_()),
        pa.array([kind for kind, *_ in items], pa.string()),
        pa.array([name for *_, name in items], pa.string()),
        pa.array([at_ms for _, at_ms, _, _ in items], pa.int64()),
        pa.array(keyed, pa.bool_()),
        pa.array(
            [
                None if is_keyed or key is None else values.encode(key)
                for (_, _, key, _), is_keyed in zip(items, keyed, strict=True)
            ],
            pa.large_binary(),
        ),
    ]
    return pa.Table.from_arrays([*fixed, *columns], schema=timer_schema(fields))


def read_owner(data: bytes | None) -> Any:
    """Return the key of a timer that is not of the key columns."""
    return None if data is None else values.decode(data)


def _columns_of(keys: list[Any], types: Sequence[pa.DataType]) -> list[pa.Array]:
    if len(types) == 1:
        return to_arrow_keys(keys, types) if keys else [pa.nulls(0, types[0])]
    missing = (None,) * len(types)
    return to_arrow_keys([missing if key is None else key for key in keys], types)


def _is_key(key: Any, types: Sequence[pa.DataType]) -> bool:
    if key is None or (len(types) > 1 and (type(key) is not tuple or len(key) != len(types))):
        return False
    try:
        return to_python_keys(to_arrow_keys([key], types)) == [key]
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    yield from table.select(_FIXED.names).to_pylist()
