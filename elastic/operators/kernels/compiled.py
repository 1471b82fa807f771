"""The kernels compiled by numba.

Keys must come as read-only arrays, always: numba compiles once for each combination of writable and read-only.
"""

from typing import Any

import numba
import numpy as np

from elastic.operators.kernels import shared
from elastic.operators.kernels.shared import Buckets, Bytes, Words
from migration.compiling import compiled

NAME = f"numba {numba.__version__}"

HALF = np.uint64(shared.ROW_BITS)
ROW = np.uint64((1 << shared.ROW_BITS) - 1)
ONE = np.uint64(1)
FREE = np.uint64(0)
BLOCK = 32  # keys prefetched together; more would evict each other from the first-level cache

mix = compiled(shared.mix_words)


@compiled
def make_entry(hashed: np.uint64, row: int) -> np.uint64:
    """Return the entry of a key with this hash."""
    return (hashed >> HALF) << HALF | np.uint64(row + 1)


LARGE = 1 << 16  # buckets; smaller indexes fit into the cache, where prefetching only costs


@compiled
def _find_bucket_of_word(word: np.int64, hashed: np.uint64, stored: Words, buckets: Buckets) -> np.uint64:
    """Return the bucket of the word's entry, or the free one where it belongs."""
    mask = np.uint64(len(buckets) - 1)
    bucket = hashed & mask
    while buckets[bucket] != FREE:
        found = buckets[bucket]
        if found >> HALF == hashed >> HALF and stored[(found & ROW) - ONE] == word:
            break
        bucket = (bucket + ONE) & mask
    return bucket


@compiled
def _prefetch_words(words: Words, begin: int, stored: Words, buckets: Buckets, touched: Words) -> None:
    """Touch the memory of the next block of words, so that cache misses overlap.

    The value of `touched` is meaningless; it keeps the compiler from removing the loop.
    """
    mask = np.uint64(len(buckets) - 1)
    for i in range(begin, min(begin + BLOCK, len(words))):
        touched[0] ^= stored[np.int64(buckets[mix(np.uint64(words[i])) & mask] & ROW) - 1]


@compiled
def find_words(words: Words, stored: Words, buckets: Buckets, rows: Words) -> None:
    """Write the row of every word to `rows`, -1 for unknown words. O(1) per word."""
    touched = np.zeros(1, np.int64)
    for i in range(len(words)):
        if i % BLOCK == 0 and len(buckets) >= LARGE:
            _prefetch_words(words, i, stored, buckets, touched)
        found = buckets[_find_bucket_of_word(words[i], mix(np.uint64(words[i])), stored, buckets)]
        rows[i] = np.int64(found & ROW) - 1


@compiled
def insert_words(words: Words, begin: int, stored: Words, count: int, most: int, buckets: Buckets, rows: Words) -> Any:
    """Write the row of every word from `begin` on to `rows`; unknown words get the next row, up to `most` rows.

    Returns the number of words done and the number of rows.
    """
    touched = np.zeros(1, np.int64)
    for i in range(begin, len(words)):
        if (i - begin) % BLOCK == 0 and len(buckets) >= LARGE:
            _prefetch_words(words, i, stored, buckets, touched)
        word = words[i]
        hashed = mix(np.uint64(word))
        bucket = _find_bucket_of_word(word, hashed, stored, buckets)
        if buckets[bucket] == FREE:
            if count == most:
                return i, count
            stored[count] = word
            buckets[bucket] = make_entry(hashed, count)
            count += 1
        rows[i] = np.int64(buckets[bucket] & ROW) - 1
    return len(words), count


@compiled
def index_words(stored: Words, count: int, buckets: Buckets) -> None:
    """Fill an empty index with rows 0..count-1, all different. O(count)."""
    mask = np.uint64(len(buckets) - 1)
    for row in range(count):
        hashed = mix(np.uint64(stored[row]))
        bucket = hashed & mask
        while buckets[bucket] != FREE:
            bucket = (bucket + ONE) & mask
        buckets[bucket] = make_entry(hashed, row)


@compiled
def count_rows(rows: Words, amounts: Words, counts: Words, seen: Bytes, touched: Words) -> int:
    """Add to the count of every row in `rows`, list the different ones in `touched`, in order; return their number.

    `amounts` has one number per row, or one for all. `seen` is zero for every row, before and after; `touched` is as
    long as `rows`.
    """
    found = 0
    step = 0 if len(amounts) == 1 else 1
    for i in range(len(rows)):
        row = rows[i]
        counts[row] += amounts[i * step]
        touched[found] = row
        found += seen[row] == 0
        seen[row] = 1
    for i in range(found):
        seen[touched[i]] = 0
    return found


SEED = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: odd, without a pattern in its bits


@compiled
def _load_word(data: Bytes, begin: int) -> np.uint64:
    """Load eight bytes as one word: unsigned positions need no check for negative indices, so it is one load."""
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
def _hash_text(data: Bytes, begin: int, end: int) -> np.uint64:
    hashed = SEED ^ np.uint64(end - begin)
    while begin + 8 <= end:
        hashed = (hashed ^ _load_word(data, begin)) * SEED
        hashed ^= hashed >> HALF
        begin += 8
    rest = np.uint64(0)
    while begin < end:
        rest = rest << np.uint64(8) | np.uint64(data[begin])
        begin += 1
    return mix(hashed ^ rest)


@compiled
def _same_text(left: Bytes, begin: int, end: int, right: Bytes, at: int, stop: int) -> bool:
    if end - begin != stop - at:
        return False
    while begin + 8 <= end:
        if _load_word(left, begin) != _load_word(right, at):
            return False
        begin += 8
        at += 8
    for i in range(end - begin):  # noqa: SIM110 - a generator would not be compiled
        if left[begin + i] != right[at + i]:
            return False
    return True


@compiled
def _prefetch_texts(
    offsets: Words,
    data: Bytes,
    begin: int,
    stored_offsets: Words,
    stored_data: Bytes,
    buckets: Buckets,
    hashes: Buckets,
) -> None:
    """Hash the next block of texts, and touch their memory as `_prefetch_words` does.

    The value behind the hashes is meaningless; it keeps the compiler from removing the second loop.
    """
    mask = np.uint64(len(buckets) - 1)
    size = min(BLOCK, len(offsets) - 1 - begin)
    for i in range(size):
        hashes[i] = _hash_text(data, offsets[begin + i], offsets[begin + i + 1])
    for i in range(size):
        row = np.int64(buckets[hashes[i] & mask] & ROW) - 1
        if row >= 0 and stored_offsets[row] < len(stored_data):
            hashes[BLOCK] ^= np.uint64(stored_data[stored_offsets[row]])


@compiled
def _find_bucket_of_text(
    data: Bytes, begin: int, end: int, hashed: np.uint64, stored_offsets: Words, stored_data: Bytes, buckets: Buckets
) -> np.uint64:
    mask = np.uint64(len(buckets) - 1)
    bucket = hashed & mask
    while buckets[bucket] != FREE:
        found = buckets[bucket]
        if found >> HALF == hashed >> HALF:
            row = np.int64(found & ROW) - 1
            if _same_text(data, begin, end, stored_data, stored_offsets[row], stored_offsets[row + 1]):
                break
        bucket = (bucket + ONE) & mask
    return bucket


@compiled
def find_texts(
    offsets: Words, data: Bytes, stored_offsets: Words, stored_data: Bytes, buckets: Buckets, rows: Words
) -> None:
    """Write the row of every text to `rows`, -1 for unknown texts. O(length) per text."""
    hashes = np.zeros(BLOCK + 1, np.uint64)
    for i in range(len(offsets) - 1):
        if i % BLOCK == 0:
            _prefetch_texts(offsets, data, i, stored_offsets, stored_data, buckets, hashes)
        hashed = hashes[i % BLOCK]
        found = buckets[
            _find_bucket_of_text(data, offsets[i], offsets[i + 1], hashed, stored_offsets, stored_data, buckets)
        ]
        rows[i] = np.int64(found & ROW) - 1


@compiled
def insert_texts(
    offsets: Words,
    data: Bytes,
    begin: int,
    stored_offsets: Words,
    stored_data: Bytes,
    count: int,
    most: int,
    buckets: Buckets,
    rows: Words,
) -> Any:
    """Like `insert_words`; also stops when the next unknown text does not fit into `stored_data`."""
    hashes = np.zeros(BLOCK + 1, np.uint64)
    for i in range(begin, len(offsets) - 1):
        if (i - begin) % BLOCK == 0:
            _prefetch_texts(offsets, data, i, stored_offsets, stored_data, buckets, hashes)
        start, end = offsets[i], offsets[i + 1]
        hashed = hashes[(i - begin) % BLOCK]
        bucket = _find_bucket_of_text(data, start, end, hashed, stored_offsets, stored_data, buckets)
        if buckets[bucket] == FREE:
            at = stored_offsets[count]
            if count == most or at + end - start > len(stored_data):
                return i, count
            for k in range(end - start):
                stored_data[at + k] = data[start + k]
            stored_offsets[count + 1] = at + end - start
            buckets[bucket] = make_entry(hashed, count)
            count += 1
        rows[i] = np.int64(buckets[bucket] & ROW) - 1
    return len(offsets) - 1, count


@compiled
def index_texts(stored_offsets: Words, stored_data: Bytes, count: int, buckets: Buckets) -> None:
    """Fill an empty index with rows 0..count-1, all different."""
    mask = np.uint64(len(buckets) - 1)
    for row in range(count):
        hashed = _hash_text(stored_data, stored_offsets[row], stored_offsets[row + 1])
        bucket = hashed & mask
        while buckets[bucket] != FREE:
            bucket = (bucket + ONE) & mask
        buckets[bucket] = make_entry(hashed, row)


@compiled
def take_texts(offsets: Words, data: Bytes, rows: Words, taken_offsets: Words, taken_data: Bytes) -> None:
    """Copy the texts of some rows to `taken_data`, each to its position in `taken_offsets`."""
    for i in range(len(rows)):
        begin, at = offsets[rows[i]], taken_offsets[i]
        for k in range(taken_offsets[i + 1] - at):
            taken_data[at + k] = data[begin + k]


@compiled
def link_rows(owners: Words, begin: int, heads: Words, following: Words) -> None:
    """Put rows from `begin` on at the beginning of the chains of their owners; -1 ends a chain."""
    for row in range(begin, len(owners)):
        following[row] = heads[owners[row]]
        heads[owners[row]] = row


@compiled
def match_rows(
    owners: Words,
    lows: Words,
    highs: Words,
    below: int,
    heads: Words,
    following: Words,
    times: Words,
    probes: Words,
    rows: Words,
) -> int:
    """Find the rows below `below` in the chain of each owner whose time is within its bounds, both inclusive.

    Writes pairs of probe and row, as many as fit, by probe and then the newest row first; returns their number.
    """
    found = 0
    for probe in range(len(owners)):
        row = heads[owners[probe]]
        while row >= 0:
            if row < below and lows[probe] <= times[row] <= highs[probe]:
                if found < len(probes):
                    probes[found] = probe
                    rows[found] = row
                found += 1
            row = following[row]
    return found
