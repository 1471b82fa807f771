"""Compression of a part as a whole.

Arrow could compress buffer by buffer inside its stream instead, but that was no faster (724 against 843 MB/s with LZ4
on a table of texts and integers), and this way one mechanism serves every codec.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from storage.codec.payload import Payload, as_bytes_view
from storage.errors import InvalidStorageInput

COMPRESSIONS = ("none", "lz4", "zstd")

# LZ4 both ways takes about 2 ms a MB, and a MB to a store and back 8 ms or less, so saving less than a quarter does
# not pay.
_MAX_REMAINING_SHARE = 0.75
_WINDOWS = 8  # that "auto" samples, spread evenly
_WINDOW_BYTES = 32 * 1024


def compress(payload: Payload, compression: str) -> tuple[str, Payload]:
    """Return the compression used and the compressed payload; "auto" means LZ4 where a sample shows that it pays."""
    if compression == "auto":
        compression = "lz4" if _is_compressible(payload.bulk) else "none"
    if compression not in COMPRESSIONS:
        raise InvalidStorageInput(f"there is no compression {compression!r}. Use auto, {', '.join(COMPRESSIONS)}.")
    if compression == "none":
        return compression, payload
    # Compressed while it is written, so that the uncompressed bytes are never in memory as a whole.
    memory = pa.BufferOutputStream()
    with pa.CompressedOutputStream(memory, compression) as sink:
        payload.write(sink)
    return compression, Payload.from_pieces([as_bytes_view(memory.getvalue())])


def decompress(stored: memoryview, compression: str, raw_size: int) -> memoryview:
    if compression == "none":
        return stored
    return as_bytes_view(pa.Codec(compression).decompress(pa.py_buffer(stored), raw_size))


def _is_compressible(bulk: Sequence[memoryview]) -> bool:
    sample = b"".join(_sample_windows(bulk))
    return bool(pa.Codec("lz4").compress(sample).size <= _MAX_REMAINING_SHARE * len(sample))


def _sample_windows(bulk: Sequence[memoryview]) -> Iterator[memoryview]:
    """Yield all bytes if they are few, else evenly spaced windows."""
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
