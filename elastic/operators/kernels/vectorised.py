"""The same kernels without a compiler: whole columns at once in NumPy and Arrow, several times slower."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.operators.kernels.shared import ROW_BITS, Buckets, Bytes, Words, mix_words

NAME = "numpy"

BLOCK = 1 << 16  # keys inserted together; when the arrays are full, at most one block is repeated

_HALF = np.uint64(ROW_BITS)
_ROW = np.uint64((1 << ROW_BITS) - 1)


def _find_rows(hashes: Buckets, buckets: Buckets, same: Callable[[Words, Words], NDArray[np.bool_]]) -> Words:
    """Return the row of each key, -1 for unknown keys; `same(keys, rows)` compares keys by position with stored rows.

    Open addressing for many keys at once: all keys advance together, and those that are found drop out.
    """
    rows = np.full(len(hashes), -1, np.int64)
    mask = np.uint64(len(buckets) - 1)
    buckets_of_keys = hashes & mask
    searching = np.arange(len(hashes))
    while len(searching):
        found = buckets[buckets_of_keys[searching]]
        alike = np.flatnonzero((found != 0) & (found >> _HALF == hashes[searching] >> _HALF))
        candidates = (found[alike] & _ROW).astype(np.int64) - 1
        hits = same(searching[alike], candidates)
        rows[searching[alike[hits]]] = candidates[hits]
        is_unfinished = found != 0
        is_unfinished[alike[hits]] = False
        searching = searching[is_unfinished]
        buckets_of_keys[searching] = (buckets_of_keys[searching] + np.uint64(1)) & mask
    return rows


def _insert_new(hashes: Buckets, first_row: int, buckets: Buckets) -> None:
    """Insert keys that are all different and unknown, as rows from `first_row` on."""
    mask = np.uint64(len(buckets) - 1)
    rows = np.arange(first_row + 1, first_row + 1 + len(hashes), dtype=np.uint64)
    entries = (hashes >> _HALF) << _HALF | rows
    buckets_of_keys = hashes & mask
    pending = np.arange(len(hashes))
    while len(pending):
        free = pending[buckets[buckets_of_keys[pending]] == 0]
        buckets[buckets_of_keys[free]] = entries[free]  # of several keys with the same bucket, one gets it
        pending = pending[buckets[buckets_of_keys[pending]] != entries[pending]]
        buckets_of_keys[pending] = (buckets_of_keys[pending] + np.uint64(1)) & mask


class Distinct(NamedTuple):
    """The different keys of a column in order of appearance, the code of each row, and the first row of each key."""

    keys: pa.Array
    codes: Words
    first: Words


def distinct(keys: pa.Array) -> Distinct:
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    # Codes are in order of appearance, so a key appears first where the highest code so far rises.
    highest = np.maximum.accumulate(codes) if len(codes) else codes
    return Distinct(encoded.dictionary, codes, np.flatnonzero(np.diff(highest, prepend=-1)))


def _hash_words(words: Words) -> Buckets:
    # The annotation is that of one word; on a column the same arithmetic applies to every word.
    return mix_words(words.view(np.uint64))  # type: ignore[arg-type, return-value]


def find_words(words: Words, stored: Words, buckets: Buckets, rows: Words) -> None:
    """Write the row of every word to `rows`, -1 for unknown words."""
    rows[:] = _find_rows(_hash_words(words), buckets, lambda keys, candidates: words[keys] == stored[candidates])


def insert_words(
    words: Words, begin: int, stored: Words, count: int, most: int, buckets: Buckets, rows: Words
) -> tuple[int, int]:
    """Write the row of every word from `begin` on; unknown words get the next row, up to `most` rows."""
    for start in range(begin, len(words), BLOCK):
        block = slice(start, start + BLOCK)
        done, count = _insert_words(words[block], stored, count, most, buckets, rows[block])
        if done < len(words[block]):
            return start + done, count
    return len(words), count


def _insert_words(words: Words, stored: Words, count: int, most: int, buckets: Buckets, rows: Words) -> tuple[int, int]:
    column = distinct(pa.array(words))
    different = column.keys.to_numpy()
    known = np.empty(len(different), np.int64)
    find_words(different, stored, buckets, known)
    unknown = np.flatnonzero(known < 0)
    entering = unknown[: most - count]
    known[entering] = count + np.arange(len(entering))
    stored[count : count + len(entering)] = different[entering]
    _insert_new(_hash_words(different[entering]), count, buckets)
    done = int(column.first[unknown[len(entering)]]) if len(entering) < len(unknown) else len(column.codes)
    rows[:done] = known[column.codes[:done]]
    return done, count + len(entering)


def index_words(stored: Words, count: int, buckets: Buckets) -> None:
    """Fill an empty index with rows 0..count-1, all different."""
    _insert_new(_hash_words(stored[:count]), 0, buckets)


def count_rows(rows: Words, amounts: Words, counts: Words, _seen: Bytes, touched: Words) -> int:
    """Add to the count of every row, list the different ones in `touched`, in order; return their number."""
    column = distinct(pa.array(rows))
    different = column.keys.to_numpy()
    np.add.at(counts, rows, amounts)
    touched[: len(different)] = different
    return len(different)


_BASE = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: odd, without a pattern in its bits
_BLOCK_BYTES = 1 << 20  # hashed together; bounds memory, since each byte becomes some words


def _array(offsets: Words, data: Bytes) -> pa.Array:
    """Return the texts as an Arrow array, without copying."""
    return pa.Array.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)], null_count=0
    )


def _parts(texts: pa.Array) -> tuple[Words, Bytes]:
    _, offsets, data = texts.buffers()
    positions = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return positions, np.frombuffer(data or b"", np.uint8)


def _hash_texts(offsets: Words, data: Bytes) -> Buckets:
    """Hash each text: a polynomial of its bytes, mixed with its length; in blocks, to bound memory."""
    hashes = np.zeros(len(offsets) - 1, np.uint64)
    begin = 0
    while begin < len(hashes):
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + _BLOCK_BYTES, "right")) - 1)
        end = min(end, len(hashes))
        hashes[begin:end] = _polynomials(offsets[begin : end + 1], data)
        begin = end
    lengths = np.diff(offsets).astype(np.uint64)
    return mix_words(hashes ^ lengths * _BASE)  # type: ignore[arg-type, return-value]


def _polynomials(offsets: Words, data: Bytes) -> Buckets:
    sums = np.zeros(len(offsets) - 1, np.uint64)
    lengths = np.diff(offsets)
    if not lengths.any():
        return sums
    powers = np.cumprod(np.full(int(lengths.max()), _BASE))
    places = np.arange(offsets[-1] - offsets[0]) - np.repeat(offsets[:-1] - offsets[0], lengths)
    terms = (data[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)) * powers[places]
    filled = np.flatnonzero(lengths)  # reduceat is wrong for empty ranges
    sums[filled] = np.add.reduceat(terms, offsets[filled] - offsets[0])
    return sums


def _rows(texts: pa.Array, stored: pa.Array, buckets: Buckets) -> Words:
    def same(keys: Words, candidates: Words) -> NDArray[np.bool_]:
        equal = pc.equal(texts.take(pa.array(keys)), stored.take(pa.array(candidates)))
        return np.asarray(equal.to_numpy(zero_copy_only=False), np.bool_)

    return _find_rows(_hash_texts(*_parts(texts)), buckets, same)


def find_texts(
    offsets: Words, data: Bytes, stored_offsets: Words, stored_data: Bytes, buckets: Buckets, rows: Words
) -> None:
    """Write the row of every text to `rows`, -1 for unknown texts."""
    rows[:] = _rows(_array(offsets, data), _array(stored_offsets, stored_data), buckets)


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
) -> tuple[int, int]:
    """Like `insert_words`; also stops when the next unknown text does not fit into `stored_data`."""
    for start in range(begin, len(rows), BLOCK):
        texts = _array(offsets, data)[start : start + BLOCK]
        block = rows[start : start + BLOCK]
        done, count = _insert_texts(texts, stored_offsets, stored_data, count, most, buckets, block)
        if done < len(texts):
            return start + done, count
    return len(rows), count


def _insert_texts(
    texts: pa.Array, stored_offsets: Words, stored_data: Bytes, count: int, most: int, buckets: Buckets, rows: Words
) -> tuple[int, int]:
    column = distinct(texts)
    known = _rows(column.keys, _array(stored_offsets, stored_data), buckets)
    unknown = np.flatnonzero(known < 0)
    starts, _ = _parts(column.keys)
    ends = stored_offsets[count] + np.cumsum(np.diff(starts)[unknown])
    entering = unknown[: min(most - count, int(np.searchsorted(ends, len(stored_data), "right")))]
    ends = ends[: len(entering)]
    if len(entering):
        new_offsets, new_texts = _parts(column.keys.take(pa.array(entering)))
        stored_data[stored_offsets[count] : ends[-1]] = new_texts[new_offsets[0] : new_offsets[-1]]
        stored_offsets[count + 1 : count + 1 + len(entering)] = ends
        known[entering] = count + np.arange(len(entering))
        _insert_new(_hash_texts(new_offsets, new_texts), count, buckets)
    done = int(column.first[unknown[len(entering)]]) if len(entering) < len(unknown) else len(column.codes)
    rows[:done] = known[column.codes[:done]]
    return done, count + len(entering)


def index_texts(stored_offsets: Words, stored_data: Bytes, count: int, buckets: Buckets) -> None:
    """Fill an empty index with rows 0..count-1, all different."""
    _insert_new(_hash_texts(stored_offsets[: count + 1], stored_data), 0, buckets)


def take_texts(offsets: Words, data: Bytes, rows: Words, taken_offsets: Words, taken_data: Bytes) -> None:
    """Copy the texts of some rows to `taken_data`, each to its position in `taken_offsets`."""
    positions, texts = _parts(_array(offsets, data).take(pa.array(rows)))
    taken_data[taken_offsets[0] : taken_offsets[-1]] = texts[positions[0] : positions[-1]]


def link_rows(owners: Words, begin: int, heads: Words, following: Words) -> None:
    """Put rows from `begin` on at the beginning of the chains of their owners; -1 ends a chain."""
    order = np.argsort(owners[begin:], kind="stable")
    sorted_owners = owners[begin:][order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = sorted_owners[1:] != sorted_owners[:-1]
    previous = np.empty(len(order), np.int64)
    previous[1:] = order[:-1] + begin
    previous[is_first] = heads[sorted_owners[is_first]]
    following[begin + order] = previous
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = is_first[1:]
    heads[sorted_owners[is_last]] = order[is_last] + begin


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

    All chains are followed together, one row at a time.
    """
    searching = np.arange(len(owners))
    current = heads[owners]
    found_probes, found_rows = [searching[:0]], [current[:0]]
    while len(searching):
        is_valid = current >= 0
        searching, current = searching[is_valid], current[is_valid]
        at = times[current]
        is_match = (current < below) & (lows[searching] <= at) & (at <= highs[searching])
        found_probes.append(searching[is_match])
        found_rows.append(current[is_match])
        current = following[current]
    all_probes = np.concatenate(found_probes)
    order = np.argsort(all_probes, kind="stable")[: len(probes)]
    probes[: len(order)] = all_probes[order]
    rows[: len(order)] = np.concatenate(found_rows)[order]
    return len(all_probes)
