"""Keys of 64 bits, compiled."""

from typing import Any

import numpy as np

from elastic.operators.kernels.compiled.compiler import BLOCK, FREE, HALF, ONE, ROW, entry, mixed
from elastic.operators.kernels.shared import Bytes, Slots, Words
from migration.compiling import compiled

LARGE = 1 << 16  # slots; smaller indexes lie in the cache, and fetching ahead would only cost


@compiled
def _place_of_word(word: np.int64, hashed: np.uint64, stored: Words, slots: Slots) -> np.uint64:
    """Where the word's entry is, or the free place where it belongs."""
    mask = np.uint64(len(slots) - 1)
    place = hashed & mask
    while slots[place] != FREE:
        slot = slots[place]
        if slot >> HALF == hashed >> HALF and stored[(slot & ROW) - ONE] == word:
            break
        place = (place + ONE) & mask
    return place


@compiled
def _fetch_words(words: Words, begin: int, stored: Words, slots: Slots, touched: Words) -> None:
    """Look at what the next block of words will need, so that the waits for memory overlap instead of adding up.

    What is left in `touched` means nothing; it keeps the compiler from leaving the loop out.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(begin, min(begin + BLOCK, len(words))):
        touched[0] ^= stored[np.int64(slots[mixed(np.uint64(words[i])) & mask] & ROW) - 1]


@compiled
def find_words(words: Words, stored: Words, slots: Slots, rows: Words) -> None:
    """The row of every word, -1 where it has none. O(1) a word."""
    touched = np.zeros(1, np.int64)
    for i in range(len(words)):
        if i % BLOCK == 0 and len(slots) >= LARGE:
            _fetch_words(words, i, stored, slots, touched)
        slot = slots[_place_of_word(words[i], mixed(np.uint64(words[i])), stored, slots)]
        rows[i] = np.int64(slot & ROW) - 1


@compiled
def insert_words(words: Words, begin: int, stored: Words, count: int, most: int, slots: Slots, rows: Words) -> Any:
    """The row of every word from `begin` on; unknown ones get the next row, until there are `most`.

    Gives how many words are done and how many rows there are now.
    """
    touched = np.zeros(1, np.int64)
    for i in range(begin, len(words)):
        if (i - begin) % BLOCK == 0 and len(slots) >= LARGE:
            _fetch_words(words, i, stored, slots, touched)
        word = words[i]
        hashed = mixed(np.uint64(word))
        place = _place_of_word(word, hashed, stored, slots)
        if slots[place] == FREE:
            if count == most:
                return i, count
            stored[count] = word
            slots[place] = entry(hashed, count)
            count += 1
        rows[i] = np.int64(slots[place] & ROW) - 1
    return len(words), count


@compiled
def index_words(stored: Words, count: int, slots: Slots) -> None:
    """Fill an empty index with rows 0..count-1, all different. O(count)."""
    mask = np.uint64(len(slots) - 1)
    for row in range(count):
        hashed = mixed(np.uint64(stored[row]))
        place = hashed & mask
        while slots[place] != FREE:
            place = (place + ONE) & mask
        slots[place] = entry(hashed, row)


@compiled
def count_rows(rows: Words, amounts: Words, counts: Words, seen: Bytes, touched: Words) -> int:
    """Add to the count of every row named, and list the rows named, each once, in order; gives how many.

    `amounts` is what to add: one number for each row named, or one for all. `seen` is zero for every row, and again
    when this is done; `touched` has room for as many as `rows`.
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
