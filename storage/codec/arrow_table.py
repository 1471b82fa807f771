"""Codec "arrow": tables and record batches as an Arrow IPC stream, used in place when they come back."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from storage.codec.payload import Codec, Payload, flat


def encode(value: object) -> Payload | None:
    if isinstance(value, pa.RecordBatch):
        return stream_of(value, "batch")
    if isinstance(value, pa.Table):
        return stream_of(value, "table")
    return None


def stream_of(value: pa.Table | pa.RecordBatch, kind: str) -> Payload:
    """The IPC stream of a table or of one record batch; compression is the envelope's business."""

    def write(sink: pa.NativeFile) -> None:
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write(value)

    return Payload(write, [flat(buffer) for buffer in _buffers(value)], kind)


def _buffers(value: pa.Table | pa.RecordBatch) -> Iterator[pa.Buffer]:
    for column in value.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            yield from (buffer for buffer in chunk.buffers() if buffer is not None)


def decode(data: memoryview, kind: str, _columns: bool = False) -> Any:
    """A table or batch over the very memory of `data`: nothing is copied, and all of `data` lives as long as it."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        value = reader.read_next_batch() if kind == "batch" else reader.read_all()
    # Costs a look at each buffer, not at each value, and turns a bug of a writer into an exception instead of a crash.
    # `validate(full=True)` would read everything again, which the digest has done already.
    value.validate()
    return value


def size_hint(value: object) -> int | None:
    return int(value.nbytes) if isinstance(value, pa.Table | pa.RecordBatch) else None


CODEC = Codec(encode, decode, size_hint)
