"""Protected keys: single keys of a stage that have a standby, although its other keys may have none."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elastic.errors import InvalidKey, InvalidProtectedKeys
from elastic.routing import TableGrouping, hash_key

if TYPE_CHECKING:
    from elastic.operators.stages import Stage

MOST_PROTECTED_KEYS = 3_000  # each is an entry of the key table, which rebalances keep at this size by default


def check_protected_keys(keys: object, grouping: str, stage: str, *, stateless: bool) -> tuple[Any, ...]:
    """Return the keys; raises `InvalidProtectedKeys` for keys that no rows can have."""
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise InvalidProtectedKeys(stage, f"{keys!r} is one value", "Give a list of keys.")
    found = tuple(keys)
    if not found:
        return ()
    if grouping != TableGrouping.kind:
        advice = f'Use grouping="{TableGrouping.kind}", or standbys=1 for all keys.'
        raise InvalidProtectedKeys(stage, f"the stage is grouped by {grouping!r}, not by a table of keys", advice)
    if stateless:
        raise InvalidProtectedKeys(stage, "its operator has no state", "Leave protected_keys out.")
    if len(found) > MOST_PROTECTED_KEYS:
        why = f"{len(found):,} keys are more than the {MOST_PROTECTED_KEYS:,} that a key table has room for"
        raise InvalidProtectedKeys(stage, why, "Name fewer, or use standbys=1 for all keys.")
    return found


def hash_protected_keys(stage: "Stage", rows: pa.Schema) -> tuple[int, ...]:
    """Return the hashes of the protected keys, each once, ascending; `InvalidProtectedKeys` for one of another type."""
    types = [rows.field(column).type for column in stage.key]
    return tuple(sorted({_hash(key, types, stage.name) for key in stage.protected_keys}))


def _hash(key: Any, types: list[pa.DataType], stage: str) -> int:
    columns = key if isinstance(key, tuple) else (key,)
    if any(value is None for value in columns):
        raise InvalidProtectedKeys(stage, f"{key!r} is null, which is no key to protect", "Give keys with a value.")
    try:
        return hash_key(*columns, types=types)
    except InvalidKey as cause:
        advice = f"Give keys of type {', '.join(map(str, types))}; several columns as a tuple."
        raise InvalidProtectedKeys(stage, f"{key!r} does not have the type of a key", advice) from cause
