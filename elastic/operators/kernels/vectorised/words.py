"""Keys of 64 bits in NumPy."""

import numpy as np
import pyarrow as pa

from elastic.operators.kernels.shared import Bytes, Slots, Words, words_mixed
from elastic.operators.kernels.vectorised.probing import BLOCK, claim, distinct, rows_of


def _hashes(words: Words) -> Slots:
    # The annotation speaks of one word; on a column the same arithmetic is done for every word.
    return words_mixed(words.view(np.uint64))  # type: ignore[arg-type, return-value]


def find_words(words: Words, stored: Words, slots: Slots, rows: Words) -> None:
    """The row of every word, -1 where it has none."""
    rows[:] = rows_of(_hashes(words), slots, lambda keys, candidates: words[keys] == stored[candidates])


def insert_words(
    words: Words, begin: int, stored: Words, count: int, most: int, slots: Slots, rows: Words
) -> tuple[int, int]:
    """The row of every word from `begin` on; unknown ones get the next row, until there are `most`."""
    for start in range(begin, len(words), BLOCK):
        block = slice(start, start + BLOCK)
        done, count = _insert_block(words[block], stored, count, most, slots, rows[block])
        if done < len(words[block]):
            return start + done, count
    return len(words), count


def _insert_block(words: Words, stored: Words, count: int, most: int, slots: Slots, rows: Words) -> tuple[int, int]:
    column = distinct(pa.array(words))
    different = column.keys.to_numpy()
    known = np.empty(len(different), np.int64)
    find_words(different, stored, slots, known)
    unknown = np.flatnonzero(known < 0)
    entering = unknown[: most - count]
    known[entering] = count + np.arange(len(entering))
    stored[count : count + len(entering)] = different[entering]
    claim(_hashes(different[entering]), count, slots)
    done = int(column.first[unknown[len(entering)]]) if len(entering) < len(unknown) else len(column.codes)
    rows[:done] = known[column.codes[:done]]
    return done, count + len(entering)


def index_words(stored: Words, count: int, slots: Slots) -> None:
    """Fill an empty index with rows 0..count-1, all different."""
    claim(_hashes(stored[:count]), 0, slots)


def count_rows(rows: Words, amounts: Words, counts: Words, _seen: Bytes, touched: Words) -> int:
    """Add to the count of every row named, and list the rows named, each once, in order; gives how many."""
    column = distinct(pa.array(rows))
    different = column.keys.to_numpy()
    np.add.at(counts, rows, amounts)
    touched[: len(different)] = different
    return len(different)
