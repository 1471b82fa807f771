"""Compression of a part as a whole.

Arrow could compress buffer by buffer inside its stream instead, but that was no faster (724 against 843 MB/s with LZ4
on a table of texts and integers), and this way one mechanism serves every codec.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from storage.codec.payload import Payload, flat
from storage.errors import InvalidStorageInput

COMPRESSIONS = ("none", "lz4", "zstd")

# At most this share must remain. LZ4 there and back takes about 2 ms a MB, and a MB to a store and back 8 ms or less,
# so a saving below a quarter is better not made.
_WORTH = 0.75
_WINDOWS = 8  # looked at by "auto", spread evenly
_WINDOW_BYTES = 32 * 1024


def compressed(payload: Payload, compression: str) -> tuple[str, Payload]:
    """The compression that was used, and the payload under it; "auto" means LZ4 where a sample says that it pays."""
    if compression == "auto":
        compression = "lz4" if _pays(payload.bulk) else "none"
    if compression not in COMPRESSIONS:
        raise InvalidStorageInput(f"no compression {compression!r}. Use auto, {', '.join(COMPRESSIONS)}.")
    if compression == "none":
        return compression, payload
    # Compressed while it is written, so that the bytes before compression never stand in memory as a whole.
    memory = pa.BufferOutputStream()
    with pa.CompressedOutputStream(memory, compression) as sink:
        payload.write(sink)
    return compression, Payload.of([flat(memory.getvalue())])


def decompressed(stored: memoryview, compression: str, raw_size: int) -> memoryview:
    if compression == "none":
        return stored
    return flat(pa.Codec(compression).decompress(pa.py_buffer(stored), raw_size))


def _pays(bulk: Sequence[memoryview]) -> bool:
    sample = b"".join(_windows(bulk))
    return bool(pa.Codec("lz4").compress(sample).size <= _WORTH * len(sample))


def _windows(bulk: Sequence[memoryview]) -> Iterator[memoryview]:
    """Everything if it is little, else evenly spaced windows over all of it."""
    total = sum(map(len, bulk))
    if total <= _WINDOWS * _WINDOW_BYTES:
        yield from bulk
        return
    step = total // _WINDOWS
    begin, due = 0, step // 2
    for piece in bulk:
        while due < begin + len(piece):
            yield piece[due - begin :][:_WINDOW_BYTES]
            due += step
        begin += len(piece)
