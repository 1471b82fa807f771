"""Keys of any length, compiled."""

from typing import Any

import numpy as np

from elastic.operators.kernels.compiled.compiler import BLOCK, FREE, HALF, ONE, ROW, entry, mixed
from elastic.operators.kernels.shared import Bytes, Slots, Words
from migration.compiling import compiled

SEED = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: odd, and without a pattern in its bits


@compiled
def _eight(data: Bytes, begin: int) -> np.uint64:
    """Eight bytes as one word: one load, since unsigned positions need no check whether they count from the end."""
    at = np.uint64(begin)
    return (
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    )


@compiled
def _hash_of_text(data: Bytes, begin: int, end: int) -> np.uint64:
    hashed = SEED ^ np.uint64(end - begin)
    while begin + 8 <= end:
        hashed = (hashed ^ _eight(data, begin)) * SEED
        hashed ^= hashed >> HALF
        begin += 8
    rest = np.uint64(0)
    while begin < end:
        rest = rest << np.uint64(8) | np.uint64(data[begin])
        begin += 1
    return mixed(hashed ^ rest)


@compiled
def _same_text(left: Bytes, begin: int, end: int, right: Bytes, at: int, stop: int) -> bool:
    if end - begin != stop - at:
        return False
    while begin + 8 <= end:
        if _eight(left, begin) != _eight(right, at):
            return False
        begin += 8
        at += 8
    for i in range(end - begin):  # noqa: SIM110 - a generator would not be compiled
        if left[begin + i] != right[at + i]:
            return False
    return True


@compiled
def _fetch_texts(
    offsets: Words, data: Bytes, begin: int, stored_offsets: Words, stored_data: Bytes, slots: Slots, hashes: Slots
) -> None:
    """Hash the next block of texts, and look at what they will need, as `_fetch_words` does.

    What is left behind the hashes means nothing; it keeps the compiler from leaving the second loop out.
    """
    mask = np.uint64(len(slots) - 1)
    size = min(BLOCK, len(offsets) - 1 - begin)
    for i in range(size):
        hashes[i] = _hash_of_text(data, offsets[begin + i], offsets[begin + i + 1])
    for i in range(size):
        row = np.int64(slots[hashes[i] & mask] & ROW) - 1
        if row >= 0 and stored_offsets[row] < len(stored_data):
            hashes[BLOCK] ^= np.uint64(stored_data[stored_offsets[row]])


@compiled
def _place_of_text(
    data: Bytes, begin: int, end: int, hashed: np.uint64, stored_offsets: Words, stored_data: Bytes, slots: Slots
) -> np.uint64:
    mask = np.uint64(len(slots) - 1)
    place = hashed & mask
    while slots[place] != FREE:
        slot = slots[place]
        if slot >> HALF == hashed >> HALF:
            row = np.int64(slot & ROW) - 1
            if _same_text(data, begin, end, stored_data, stored_offsets[row], stored_offsets[row + 1]):
                break
        place = (place + ONE) & mask
    return place


@compiled
def find_texts(
    offsets: Words, data: Bytes, stored_offsets: Words, stored_data: Bytes, slots: Slots, rows: Words
) -> None:
    """The row of every text, -1 where it has none. O(length) a text."""
    hashes = np.zeros(BLOCK + 1, np.uint64)
    for i in range(len(offsets) - 1):
        if i % BLOCK == 0:
            _fetch_texts(offsets, data, i, stored_offsets, stored_data, slots, hashes)
        hashed = hashes[i % BLOCK]
        slot = slots[_place_of_text(data, offsets[i], offsets[i + 1], hashed, stored_offsets, stored_data, slots)]
        rows[i] = np.int64(slot & ROW) - 1


@compiled
def insert_texts(
    offsets: Words,
    data: Bytes,
    begin: int,
    stored_offsets: Words,
    stored_data: Bytes,
    count: int,
    most: int,
    slots: Slots,
    rows: Words,
) -> Any:
    """As `insert_words`; it also stops when the next unknown text does not fit into `stored_data`."""
    hashes = np.zeros(BLOCK + 1, np.uint64)
    for i in range(begin, len(offsets) - 1):
        if (i - begin) % BLOCK == 0:
            _fetch_texts(offsets, data, i, stored_offsets, stored_data, slots, hashes)
        start, end = offsets[i], offsets[i + 1]
        hashed = hashes[(i - begin) % BLOCK]
        place = _place_of_text(data, start, end, hashed, stored_offsets, stored_data, slots)
        if slots[place] == FREE:
            at = stored_offsets[count]
            if count == most or at + end - start > len(stored_data):
                return i, count
            for k in range(end - start):
                stored_data[at + k] = data[start + k]
            stored_offsets[count + 1] = at + end - start
            slots[place] = entry(hashed, count)
            count += 1
        rows[i] = np.int64(slots[place] & ROW) - 1
    return len(offsets) - 1, count


@compiled
def index_texts(stored_offsets: Words, stored_data: Bytes, count: int, slots: Slots) -> None:
    """Fill an empty index with rows 0..count-1, all different."""
    mask = np.uint64(len(slots) - 1)
    for row in range(count):
        hashed = _hash_of_text(stored_data, stored_offsets[row], stored_offsets[row + 1])
        place = hashed & mask
        while slots[place] != FREE:
            place = (place + ONE) & mask
        slots[place] = entry(hashed, row)


@compiled
def take_texts(offsets: Words, data: Bytes, rows: Words, taken_offsets: Words, taken_data: Bytes) -> None:
    """Copy the texts of some rows one after the other; `taken_offsets` says where each must go."""
    for i in range(len(rows)):
        begin, at = offsets[rows[i]], taken_offsets[i]
        for k in range(taken_offsets[i + 1] - at):
            taken_data[at + k] = data[begin + k]
