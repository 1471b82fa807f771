"""The loops of `key_counter`, compiled by numba; imported only if numba is installed."""

import numpy as np
import numpy.typing as npt

from migration.compiling import compiled

# Tasks are chosen by the low bits of a hash, so those are the same for many keys of a unit.
_SHIFT = 20


@compiled
def _find(key_hash: int, slots: npt.NDArray[np.int64], mask: int) -> int:
    """Return the slot of a hash, or the empty one where it belongs; there is always an empty slot."""
    slot = (key_hash >> _SHIFT) & mask
    while slots[slot, 1] != 0 and slots[slot, 0] != key_hash:
        slot = (slot + 1) & mask
    return slot


@compiled
def count_rows(
    hashes: npt.NDArray[np.int64], weight: int, start: int, room: int, slots: npt.NDArray[np.int64]
) -> tuple[int, int]:
    """Count rows from `start` on until one needs more than `room` new slots; return that row, and the slots used.

    Each counts as many times as `weight` says.
    """
    mask, used = len(slots) - 1, 0
    for row in range(start, len(hashes)):
        slot = _find(hashes[row], slots, mask)
        if slots[slot, 1] == 0:
            if used == room:
                return row, used
            used += 1
            slots[slot, 0] = hashes[row]
        slots[slot, 1] += weight
    return len(hashes), used


@compiled
def add_amounts(
    hashes: npt.NDArray[np.int64],
    amounts: npt.NDArray[np.int64],
    start: int,
    room: int,
    slots: npt.NDArray[np.int64],
    nanoseconds: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Do the same with groups of rows: each has a positive number of rows, and nanoseconds."""
    mask, used = len(slots) - 1, 0
    for row in range(start, len(hashes)):
        slot = _find(hashes[row], slots, mask)
        if slots[slot, 1] == 0:
            if used == room:
                return row, used
            used += 1
            slots[slot, 0] = hashes[row]
        slots[slot, 1] += amounts[row, 0]
        nanoseconds[slot] += amounts[row, 1]
    return len(hashes), used


@compiled
def choose_rows(seed: np.uint64, stride: int, chosen: npt.NDArray[np.int64]) -> None:
    """Fill `chosen` with a random number of each run of `stride` numbers from 0 on (xorshift64)."""
    for i in range(len(chosen)):
        seed ^= seed << np.uint64(13)
        seed ^= seed >> np.uint64(7)
        seed ^= seed << np.uint64(17)
        chosen[i] = i * stride + np.int64((seed >> np.uint64(33)) % np.uint64(stride))
