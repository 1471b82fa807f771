"""Bytes as a stream of Arrow batches, which Flight sends without copying them."""

from collections.abc import Iterable

import pyarrow as pa

from storage.stores.protocol import Bytes

_CHUNK_BYTES = 4 << 20  # a message of Flight may not exceed 2 GB, and large ones wait for all of themselves
_SCHEMA = pa.schema([("bytes", pa.uint8())])


def chunked(data: Bytes) -> pa.Table:
    """A view of the data, not a copy."""
    whole = pa.py_buffer(data)
    starts = range(0, whole.size, _CHUNK_BYTES)
    pieces = [whole.slice(start, min(_CHUNK_BYTES, whole.size - start)) for start in starts]
    arrays = [pa.Array.from_buffers(pa.uint8(), piece.size, [None, piece]) for piece in pieces]
    return pa.table([pa.chunked_array(arrays, pa.uint8())], schema=_SCHEMA)


def joined(batches: Iterable[pa.RecordBatch], size: int) -> memoryview:
    """The data again, in one piece of memory; `ValueError` if it has another size."""
    memory = memoryview(pa.allocate_buffer(size)).cast("B")
    end = 0
    for batch in batches:
        piece = memoryview(batch.column(0).to_numpy())
        if end + len(piece) > size:
            raise ValueError(f"more than {size} bytes came")
        memory[end : end + len(piece)] = piece
        end += len(piece)
    if end != size:
        raise ValueError(f"{end} of {size} bytes came")
    return memory.toreadonly()
