"""The types and the layout that both versions of the kernels share.

An index is open addressing with linear probing: `slots` has a power of two of entries, and an entry is 0 (free) or
`tag << 32 | row + 1`, where the tag is the upper half of the key's hash. Most keys that are not the one looked for
are told apart by their tag alone, without touching their bytes. Keys themselves lie elsewhere, by row number:
words as int64, texts as bytes between two offsets. Row numbers are given in the order of first appearance, so both
versions number alike although they hash differently.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Slots = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

ROW_BITS = 32  # four billion keys a task, beyond what a node can hold


def words_mixed(word: np.uint64) -> np.uint64:
    """A bijection in which every bit of the result depends on every bit of the word (MurmurHash3's finaliser)."""
    word = word ^ (word >> np.uint64(33))
    word = word * np.uint64(0xFF51AFD7ED558CCD)
    word = word ^ (word >> np.uint64(33))
    word = word * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))
