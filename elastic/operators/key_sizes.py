"""The size of the state of single keys: an estimate from what the state of their unit is, corrected by a sample."""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elastic.errors import ElasticError
from elastic.operators.calls import UnitState
from elastic.operators.columns import KeyedColumns
from elastic.operators.key_records import measure_part
from elastic.operators.keyed import KeyedOperator
from elastic.operators.operator import Hashes, Operator
from elastic.routing.hashing import is_among
from storage.errors import StorageError

if TYPE_CHECKING:
    from elastic.operators.stage_runner import StageRunner

_SAMPLED_KEYS = 16
_SAMPLED_BYTES = 1 << 18  # in all: pickled in a millisecond or two


class PartSizes(NamedTuple):
    """What keys take that leave their unit: `scale` times their estimated sizes, and `part` for every part of them."""

    scale: float = 1.0
    part: float = 0.0


AS_ESTIMATED = PartSizes()


def sample_sizes(runner: "StageRunner", values: Mapping[Any, Any]) -> PartSizes:
    """Compare the estimated sizes of some keys, whose states are given, with what these take in parts.

    With a part p and keys k_1 to k_n, parts of one key each take n p + sum k_i, and one with all of them p + sum k_i.
    Large states are left out. `AS_ESTIMATED` if fewer than two are left, or if they cannot be stored.
    """
    sample, estimated = {}, 0
    for key, value in islice(values.items(), _SAMPLED_KEYS):
        size = int(runner.operator.state_size({key: value}))
        if estimated + size <= _SAMPLED_BYTES:
            sample[key], estimated = value, estimated + size
    if len(sample) < 2 or not estimated:
        return AS_ESTIMATED
    try:
        together = measure_part(runner, UnitState(sample))
        alone = sum(measure_part(runner, UnitState({key: value})) for key, value in sample.items())
    except (ElasticError, StorageError):  # the next snapshot says so, with what to do
        return AS_ESTIMATED
    part = (alone - together) / (len(sample) - 1)
    return PartSizes((together - part) / estimated, part)


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
