"""Open addressing for many keys at once: all keys take their next step together, and those that are done drop out."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.operators.kernels.shared import ROW_BITS, Slots, Words

BLOCK = 1 << 16  # keys inserted together; what is done for nothing, when there is no more room, is at most one block

_HALF = np.uint64(ROW_BITS)
_ROW = np.uint64((1 << ROW_BITS) - 1)


def rows_of(hashes: Slots, slots: Slots, same: Callable[[Words, Words], NDArray[np.bool_]]) -> Words:
    """The row of each key, -1 if it has none; `same(keys, rows)` compares keys by position with stored rows."""
    rows = np.full(len(hashes), -1, np.int64)
    mask = np.uint64(len(slots) - 1)
    places = hashes & mask
    searching = np.arange(len(hashes))
    while len(searching):
        found = slots[places[searching]]
        alike = np.flatnonzero((found != 0) & (found >> _HALF == hashes[searching] >> _HALF))
        candidates = (found[alike] & _ROW).astype(np.int64) - 1
        hits = same(searching[alike], candidates)
        rows[searching[alike[hits]]] = candidates[hits]
        going_on = found != 0
        going_on[alike[hits]] = False
        searching = searching[going_on]
        places[searching] = (places[searching] + np.uint64(1)) & mask
    return rows


def claim(hashes: Slots, first_row: int, slots: Slots) -> None:
    """Enter keys that are all different, and not there yet, as rows from `first_row` on."""
    mask = np.uint64(len(slots) - 1)
    rows = np.arange(first_row + 1, first_row + 1 + len(hashes), dtype=np.uint64)
    entries = (hashes >> _HALF) << _HALF | rows
    places = hashes & mask
    homeless = np.arange(len(hashes))
    while len(homeless):
        free = homeless[slots[places[homeless]] == 0]
        slots[places[free]] = entries[free]  # where several want one place, one of them gets it
        homeless = homeless[slots[places[homeless]] != entries[homeless]]
        places[homeless] = (places[homeless] + np.uint64(1)) & mask


class Distinct(NamedTuple):
    """The different keys of a column in order of appearance, which of them each row has, and where each comes first."""

    keys: pa.Array
    codes: Words
    first: Words


def distinct(keys: pa.Array) -> Distinct:
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    # Codes are given in order of appearance, so a key comes first where the highest code so far rises.
    highest = np.maximum.accumulate(codes) if len(codes) else codes
    return Distinct(encoded.dictionary, codes, np.flatnonzero(np.diff(highest, prepend=-1)))
