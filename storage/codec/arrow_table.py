"""Codec "arrow": tables and record batches as an Arrow IPC stream, decoded without a copy."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from storage.codec.payload import Codec, Payload, as_bytes_view


def encode(value: object) -> Payload | None:
    if isinstance(value, pa.RecordBatch):
        return encode_stream(value, "batch")
    if isinstance(value, pa.Table):
        return encode_stream(value, "table")
    return None


def encode_stream(value: pa.Table | pa.RecordBatch, kind: str) -> Payload:
    """Encode a table or one record batch as an IPC stream, uncompressed: the envelope compresses."""

    def write(sink: pa.NativeFile) -> None:
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write(value)

    return Payload(write, [as_bytes_view(buffer) for buffer in _buffers(value)], kind)


def _buffers(value: pa.Table | pa.RecordBatch) -> Iterator[pa.Buffer]:
    for column in value.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            yield from (buffer for buffer in chunk.buffers() if buffer is not None)


def decode(data: memoryview, kind: str) -> Any:
    """Return a table or batch over the memory of `data`: nothing is copied, and `data` lives as long as it does."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        value = reader.read_next_batch() if kind == "batch" else reader.read_all()
    # Checks each buffer, not each value, and turns a bug of a writer into an exception instead of a crash.
    # `validate(full=True)` would read everything again, as the digest has done already.
    value.validate()
    return value


def estimate_size(value: object) -> int | None:
    return int(value.nbytes) if isinstance(value, pa.Table | pa.RecordBatch) else None


CODEC = Codec(encode, decode, estimate_size)
