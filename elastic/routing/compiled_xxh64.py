"""XXH64 compiled by numba: a text of a few letters takes some 10 ns, a number 2 ns.

Imported only if numba is installed; else `xxh64` uses the `xxhash` package, which gives the same hashes.
"""

import numpy as np
import numpy.typing as npt

from elastic.routing.xxh64 import PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5
from migration.compiling import compiled


@compiled
def _rotate(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@compiled
def _load_word(data: npt.NDArray[np.uint8], at: int, size: int) -> np.uint64:
    """Load `size` bytes as one little-endian number; one load for a constant size."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[np.uint64(at + i)]) << np.uint64(8 * i)
    return word


@compiled
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * PRIME_2, 31) * PRIME_1


@compiled
def _merge(hashed: np.uint64, lane: np.uint64) -> np.uint64:
    return (hashed ^ _round(np.uint64(0), lane)) * PRIME_1 + PRIME_4


@compiled
def _mix(hashed: np.uint64) -> np.uint64:
    hashed ^= hashed >> np.uint64(33)
    hashed *= PRIME_2
    hashed ^= hashed >> np.uint64(29)
    hashed *= PRIME_3
    return hashed ^ (hashed >> np.uint64(32))


@compiled
def _hash(data: npt.NDArray[np.uint8], begin: int, end: int, seed: np.uint64) -> np.uint64:
    at = begin
    if end - begin >= 32:
        first, second = seed + PRIME_1 + PRIME_2, seed + PRIME_2
        third, fourth = seed, seed - PRIME_1
        while at + 32 <= end:
            first = _round(first, _load_word(data, at, 8))
            second = _round(second, _load_word(data, at + 8, 8))
            third = _round(third, _load_word(data, at + 16, 8))
            fourth = _round(fourth, _load_word(data, at + 24, 8))
            at += 32
        hashed = _rotate(first, 1) + _rotate(second, 7) + _rotate(third, 12) + _rotate(fourth, 18)
        hashed = _merge(_merge(_merge(_merge(hashed, first), second), third), fourth)
    else:
        hashed = seed + PRIME_5
    hashed += np.uint64(end - begin)
    while at + 8 <= end:
        hashed = _rotate(hashed ^ _round(np.uint64(0), _load_word(data, at, 8)), 27) * PRIME_1 + PRIME_4
        at += 8
    if at + 4 <= end:
        hashed = _rotate(hashed ^ (_load_word(data, at, 4) * PRIME_1), 23) * PRIME_2 + PRIME_3
        at += 4
    while at < end:
        hashed = _rotate(hashed ^ (np.uint64(data[at]) * PRIME_5), 11) * PRIME_1
        at += 1
    return _mix(hashed)


@compiled
def hash_longs(words: npt.NDArray[np.uint64], seeds: npt.NDArray[np.uint64], hashes: npt.NDArray[np.uint64]) -> None:
    """Hash every word of 8 bytes with its seed."""
    for i in range(len(seeds)):
        hashed = (seeds[i] + PRIME_5 + np.uint64(8)) ^ _round(np.uint64(0), words[i])
        hashes[i] = _mix(_rotate(hashed, 27) * PRIME_1 + PRIME_4)


@compiled
def hash_texts(
    offsets: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    seeds: npt.NDArray[np.uint64],
    hashes: npt.NDArray[np.uint64],
) -> None:
    """Hash every text `data[offsets[i]:offsets[i + 1]]` with its seed."""
    for i in range(len(seeds)):
        hashes[i] = _hash(data, offsets[i], offsets[i + 1], seeds[i])
