"""All combinations of the words of texts, byte by byte, without Python objects.

A text is words separated by one space; text i is `data[offsets[i]:offsets[i + 1]]`. Inputs must always be read-only
arrays: numba compiles once for each combination of writable and read-only.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from migration.optional_compiling import compiled

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

SPACE = np.uint8(ord(" "))


@compiled
def _choices(words: int, size: int) -> int:
    """Return the number of ways to choose `size` of `words` words."""
    ways = 1
    for i in range(size):
        ways = ways * (words - i) // (i + 1)
    return ways


@compiled
def measure(offsets: Numbers, data: Bytes, shortest: int, longest: int, counts: Numbers, sizes: Numbers) -> None:
    """Write the number and the bytes of the patterns of `shortest` to `longest` words of every text.

    A word is in C(words - 1, k - 1) of the C(words, k) patterns of k words, so none need be generated. O(bytes).
    """
    for i in range(len(offsets) - 1):
        words = 1
        for at in range(offsets[i], offsets[i + 1]):
            words += data[at] == SPACE
        letters = offsets[i + 1] - offsets[i] - (words - 1)
        counts[i] = 0
        sizes[i] = 0
        for k in range(shortest, min(longest, words) + 1):
            patterns = _choices(words, k)
            counts[i] += patterns
            sizes[i] += letters * _choices(words - 1, k - 1) + (k - 1) * patterns


@compiled
def _starts(offsets: Numbers, data: Bytes, text: int, starts: Numbers) -> int:
    """Write the start of each word of a text, and the end of the last plus one; return the number of words."""
    words = 1
    starts[0] = offsets[text]
    for at in range(offsets[text], offsets[text + 1]):
        if data[at] == SPACE:
            starts[words] = at + 1
            words += 1
    starts[words] = offsets[text + 1] + 1
    return words


@compiled
def _put(data: Bytes, starts: Numbers, chosen: Numbers, size: int, made: Bytes, at: int) -> int:
    """Write the chosen words as a pattern; return the start of the next pattern."""
    for place in range(size):
        if place:
            made[at] = SPACE
            at += 1
        for letter in range(starts[chosen[place]], starts[chosen[place] + 1] - 1):
            made[at] = data[letter]
            at += 1
    return at


@compiled
def _advance(chosen: Numbers, size: int, words: int) -> bool:
    """Advance to the next choice in lexicographic order, in place; return False after the last one."""
    place = size - 1
    while place >= 0 and chosen[place] == words - size + place:
        place -= 1
    if place < 0:
        return False
    chosen[place] += 1
    for later in range(place + 1, size):
        chosen[later] = chosen[later - 1] + 1
    return True


@compiled
def fill(
    offsets: Numbers,
    data: Bytes,
    shortest: int,
    longest: int,
    max_words: int,
    made_offsets: NDArray[np.int32],
    made: Bytes,
) -> Any:
    """Write the patterns that `measure` counted: texts in order, shorter patterns first. O(bytes written)."""
    starts = np.empty(max_words + 1, np.int64)
    chosen = np.empty(longest, np.int64)
    pattern = 0
    at = 0
    made_offsets[0] = 0
    for text in range(len(offsets) - 1):
        words = _starts(offsets, data, text, starts)
        for size in range(shortest, min(longest, words) + 1):
            for place in range(size):
                chosen[place] = place
            more = True
            while more:
                at = _put(data, starts, chosen, size, made, at)
                pattern += 1
                made_offsets[pattern] = at
                more = _advance(chosen, size, words)
    return pattern
