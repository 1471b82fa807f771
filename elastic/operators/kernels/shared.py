"""The types and the layout that both implementations of the kernels share.

An index uses open addressing with linear probing: the number of `buckets` is a power of two, and a bucket is 0 (free)
or `tag << 32 | row + 1`, where the tag is the upper half of the key's hash. The tag alone rules out most other keys,
without touching their bytes. Keys are stored apart, by row number: words as int64, texts as bytes between two offsets.
Rows are numbered in the order of first appearance, so both implementations number alike although they hash differently.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Buckets = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

ROW_BITS = 32  # four billion keys per task, more than a node can hold


def mix_words(word: np.uint64) -> np.uint64:
    """Mix the bits of a word (the finaliser of MurmurHash3): a bijection in which every bit depends on all others."""
    word = word ^ (word >> np.uint64(33))
    word = word * np.uint64(0xFF51AFD7ED558CCD)
    word = word ^ (word >> np.uint64(33))
    word = word * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))
