"""XXH64 as Spark SQL uses it: one 64-bit hash per row, started from a seed per row.

Numbers go through the short ways that XXH64 has for exactly 4 and 8 bytes, as whole NumPy columns; about 10 ns a row.
Strings go one by one through the `xxhash` package; about 300 ns a row.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from xxhash import xxh64_intdigest

Hashes = npt.NDArray[np.uint64]

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def of_ints(values: npt.NDArray[np.int32], seeds: Hashes) -> Hashes:
    """The hash of each value as 4 bytes."""
    hashes = seeds + (_PRIME_5 + np.uint64(4))
    hashes ^= values.view(np.uint32).astype(np.uint64) * _PRIME_1
    hashes = _rotated(hashes, 23)
    hashes *= _PRIME_2
    hashes += _PRIME_3
    return _mixed(hashes)


def of_longs(values: npt.NDArray[np.int64], seeds: Hashes) -> Hashes:
    """The hash of each value as 8 bytes."""
    words = _rotated(values.view(np.uint64) * _PRIME_2, 31)
    words *= _PRIME_1
    words ^= seeds + (_PRIME_5 + np.uint64(8))
    hashes = _rotated(words, 27)
    hashes *= _PRIME_1
    hashes += _PRIME_4
    return _mixed(hashes)


def of_bytes(values: Iterable[bytes | memoryview], seeds: Hashes) -> Hashes:
    """The hash of each value's bytes."""
    return np.fromiter(map(xxh64_intdigest, values, seeds.tolist()), np.uint64, len(seeds))


def _rotated(words: Hashes, bits: int) -> Hashes:
    low = words >> np.uint64(64 - bits)
    words <<= np.uint64(bits)
    words |= low
    return words


def _mixed(hashes: Hashes) -> Hashes:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _PRIME_2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _PRIME_3
    hashes ^= hashes >> np.uint64(32)
    return hashes
