"""The size of the state of single keys: an estimate from what the state of their unit is."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elastic.operators.columns import KeyedColumns
from elastic.operators.keyed import KeyedOperator
from elastic.operators.operator import Hashes, Operator
from elastic.routing.hashing import is_among


def measure_keys(
    operator: Operator, value: Any, size: int, hashes: Hashes, known: Mapping[int, Any], active: int
) -> NDArray[np.int64]:
    """Return the bytes of each key, of the `size` bytes of a state with this value.

    A key whose value is in `known`, by hash, is measured by the operator if its state is by key. `KeyedColumns` with
    more key columns than the stage's are divided by rows. Any other state is divided evenly: by the entries of a
    mapping or of keyed columns, else by the `active` keys of the unit. O(1) per key, and O(rows) for keyed columns with
    more key columns.
    """
    if operator.stateless or not len(hashes):
        return np.zeros(len(hashes), np.int64)
    if isinstance(value, KeyedColumns) and set(value.key_schema.names) > set(operator.key):
        return _divide_rows(value, size, hashes, operator)
    count = len(value) if isinstance(value, Mapping | KeyedColumns) else active
    sizes = np.full(len(hashes), size // max(count, 1), np.int64)
    if isinstance(operator, KeyedOperator):
        for place, key_hash in enumerate(hashes.tolist()):
            if key_hash in known:
                key = known[key_hash]
                sizes[place] = operator.state_size({key: value[key]}) if key in value else 0
    return sizes


def _divide_rows(value: KeyedColumns, size: int, hashes: Hashes, operator: Operator) -> NDArray[np.int64]:
    rows = value.hash_keys(operator.key)
    found, counts = np.unique(rows[is_among(rows, hashes)], return_counts=True)
    sizes = np.zeros(len(hashes), np.int64)
    if len(found):
        places = np.minimum(np.searchsorted(found, hashes), len(found) - 1)
        sizes[:] = np.where(found[places] == hashes, counts[places] * size // len(value), 0)
    return sizes
