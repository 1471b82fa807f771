"""XXH64 as Spark SQL uses it: one 64-bit hash per row, with a seed per row.

Numbers are hashed by the special cases of XXH64 for 4 and 8 bytes: those of 8 bytes by a loop that numba compiles, 2 ns
per row, others and without numba as NumPy columns, about 10 ns per row and more where these are not in the processor's
cache. Texts are hashed by a compiled loop, some 10 ns for a short one; without numba by the `xxhash` package, 300 ns.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

from elastic.routing.compiled_loops import as_read_only, load_compiled

Hashes = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_FEW = 64  # values that take less time than loading the compiled loop

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = np.uint64(0x165667B19E3779F9)
PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def hash_ints(values: npt.NDArray[np.int32], seeds: Hashes) -> Hashes:
    """Hash each value as 4 bytes."""
    hashes = seeds + (PRIME_5 + np.uint64(4))
    hashes ^= values.view(np.uint32).astype(np.uint64) * PRIME_1
    hashes = _rotate(hashes, 23)
    hashes *= PRIME_2
    hashes += PRIME_3
    return _mix(hashes)


def hash_longs(values: npt.NDArray[np.int64], seeds: Hashes) -> Hashes:
    """Hash each value as 8 bytes."""
    compiled = None if len(seeds) < _FEW else load_compiled("compiled_xxh64", "hash_longs")
    if compiled is None:
        return hash_longs_with_numpy(values, seeds)
    hashes = np.empty_like(seeds)
    compiled(as_read_only(values.view(np.uint64)), as_read_only(seeds), hashes)
    return hashes


def hash_longs_with_numpy(values: npt.NDArray[np.int64], seeds: Hashes) -> Hashes:
    """Do the same without a compiler."""
    words = _rotate(values.view(np.uint64) * PRIME_2, 31)
    words *= PRIME_1
    words ^= seeds + (PRIME_5 + np.uint64(8))
    hashes = _rotate(words, 27)
    hashes *= PRIME_1
    hashes += PRIME_4
    return _mix(hashes)


def hash_bytes(values: Iterable[bytes | memoryview], seeds: Hashes) -> Hashes:
    """Hash the bytes of each value."""
    return np.fromiter(map(xxh64_intdigest, values, seeds.tolist()), np.uint64, len(seeds))


def load() -> None:
    """Load the compiled loop, or compile it into its cache."""
    hash_texts(np.zeros(_FEW + 1, np.int64), np.zeros(0, np.uint8), np.zeros(_FEW, np.uint64))
    hash_longs(np.zeros(_FEW, np.int64), np.zeros(_FEW, np.uint64))


def hash_texts(offsets: Offsets, data: Bytes, seeds: Hashes) -> Hashes:
    """Hash each text `data[offsets[i]:offsets[i + 1]]`."""
    compiled = None if len(seeds) < _FEW else load_compiled("compiled_xxh64", "hash_texts")
    if compiled is None:
        view = data.data
        return hash_bytes((view[start:stop] for start, stop in pairwise(offsets.tolist())), seeds)
    hashes = np.empty_like(seeds)
    compiled(as_read_only(offsets), as_read_only(data), as_read_only(seeds), hashes)
    return hashes


def _rotate(words: Hashes, bits: int) -> Hashes:
    low = words >> np.uint64(64 - bits)
    words <<= np.uint64(bits)
    words |= low
    return words


def _mix(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> np.uint64(33)
    hashes *= PRIME_2
    hashes ^= hashes >> np.uint64(29)
    hashes *= PRIME_3
    hashes ^= hashes >> np.uint64(32)
    return hashes
