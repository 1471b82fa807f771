"""Keys of any length in NumPy; Arrow compares and copies them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastic.operators.kernels.shared import Bytes, Slots, Words, words_mixed
from elastic.operators.kernels.vectorised.probing import BLOCK, claim, distinct, rows_of

_BASE = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: odd, and without a pattern in its bits
_BLOCK_BYTES = 1 << 20  # hashed at once, since a byte becomes some words on the way


def _array(offsets: Words, data: Bytes) -> pa.Array:
    """The texts as Arrow sees them, without copying."""
    return pa.Array.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)], null_count=0
    )


def _parts(texts: pa.Array) -> tuple[Words, Bytes]:
    _, offsets, data = texts.buffers()
    positions = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return positions, np.frombuffer(data or b"", np.uint8)


def _hashes(offsets: Words, data: Bytes) -> Slots:
    """A polynomial in the bytes of each text, mixed with its length; in blocks, to bound the memory it takes."""
    hashes = np.zeros(len(offsets) - 1, np.uint64)
    begin = 0
    while begin < len(hashes):
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + _BLOCK_BYTES, "right")) - 1)
        end = min(end, len(hashes))
        hashes[begin:end] = _polynomials(offsets[begin : end + 1], data)
        begin = end
    lengths = np.diff(offsets).astype(np.uint64)
    return words_mixed(hashes ^ lengths * _BASE)  # type: ignore[arg-type, return-value]


def _polynomials(offsets: Words, data: Bytes) -> Slots:
    sums = np.zeros(len(offsets) - 1, np.uint64)
    lengths = np.diff(offsets)
    if not lengths.any():
        return sums
    powers = np.cumprod(np.full(int(lengths.max()), _BASE))
    places = np.arange(offsets[-1] - offsets[0]) - np.repeat(offsets[:-1] - offsets[0], lengths)
    terms = (data[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1)) * powers[places]
    filled = np.flatnonzero(lengths)  # reduceat gives nonsense for empty ranges
    sums[filled] = np.add.reduceat(terms, offsets[filled] - offsets[0])
    return sums


def _rows(texts: pa.Array, stored: pa.Array, slots: Slots) -> Words:
    def same(keys: Words, candidates: Words) -> NDArray[np.bool_]:
        equal = pc.equal(texts.take(pa.array(keys)), stored.take(pa.array(candidates)))
        return np.asarray(equal.to_numpy(zero_copy_only=False), np.bool_)

    return rows_of(_hashes(*_parts(texts)), slots, same)


def find_texts(
    offsets: Words, data: Bytes, stored_offsets: Words, stored_data: Bytes, slots: Slots, rows: Words
) -> None:
    """The row of every text, -1 where it has none."""
    rows[:] = _rows(_array(offsets, data), _array(stored_offsets, stored_data), slots)


def insert_texts(
    offsets: Words,
    data: Bytes,
    begin: int,
    stored_offsets: Words,
    stored_data: Bytes,
    count: int,
    most: int,
    slots: Slots,
    rows: Words,
) -> tuple[int, int]:
    """As `insert_words`; it also stops when the next unknown text does not fit into `stored_data`."""
    for start in range(begin, len(rows), BLOCK):
        texts = _array(offsets, data)[start : start + BLOCK]
        block = rows[start : start + BLOCK]
        done, count = _insert_block(texts, stored_offsets, stored_data, count, most, slots, block)
        if done < len(texts):
            return start + done, count
    return len(rows), count


def _insert_block(
    texts: pa.Array, stored_offsets: Words, stored_data: Bytes, count: int, most: int, slots: Slots, rows: Words
) -> tuple[int, int]:
    column = distinct(texts)
    known = _rows(column.keys, _array(stored_offsets, stored_data), slots)
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
        claim(_hashes(new_offsets, new_texts), count, slots)
    done = int(column.first[unknown[len(entering)]]) if len(entering) < len(unknown) else len(column.codes)
    rows[:done] = known[column.codes[:done]]
    return done, count + len(entering)


def index_texts(stored_offsets: Words, stored_data: Bytes, count: int, slots: Slots) -> None:
    """Fill an empty index with rows 0..count-1, all different."""
    claim(_hashes(stored_offsets[: count + 1], stored_data), 0, slots)


def take_texts(offsets: Words, data: Bytes, rows: Words, taken_offsets: Words, taken_data: Bytes) -> None:
    """Copy the texts of some rows one after the other; `taken_offsets` says where each must go."""
    positions, texts = _parts(_array(offsets, data).take(pa.array(rows)))
    taken_data[taken_offsets[0] : taken_offsets[-1]] = texts[positions[0] : positions[-1]]
