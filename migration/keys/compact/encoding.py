"""Records as bytes, for heartbeats: every column in as few bytes as its values need.

A header, then the distinct work values and sizes as float64, then the columns: nodes, positions in these lists, and
counts as unsigned integers of 1, 2, 4 or 8 bytes. About 7 bytes a record; all little-endian.
"""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidWorkload
from migration.keys.compact.records import KeyRecords

_HEADER = struct.Struct("<4sIII6B2x")  # mark, records, distinct work values, distinct sizes, width of every column
_MARK = b"KRC1"
_WIDTHS = (1, 2, 4, 8)


def encode_records(records: KeyRecords) -> bytes:
    """Encode records; `decode_records` restores them exactly."""
    work, work_position = np.unique(records.work, return_inverse=True)
    size, size_position = np.unique(records.size, return_inverse=True)
    columns: list[NDArray[Any]]
    columns = [records.current, records.destination, records.home, work_position, size_position, records.count]
    widths = [_width(column) for column in columns]
    parts = [_HEADER.pack(_MARK, len(records), len(work), len(size), *widths)]
    parts += [values.astype("<f8").tobytes() for values in (work, size)]
    parts += [column.astype(f"<u{width}").tobytes() for column, width in zip(columns, widths, strict=True)]
    return b"".join(parts)


def decode_records(data: bytes) -> KeyRecords:
    """Decode what `encode_records` wrote; raise `InvalidWorkload` for anything else."""
    try:
        mark, count, works, sizes, *widths = _HEADER.unpack_from(data)
        expected = _HEADER.size + 8 * (works + sizes) + count * sum(widths)
        if mark != _MARK or len(data) != expected or not set(widths) <= set(_WIDTHS):
            raise InvalidWorkload(f"{len(data)} bytes are no records. Encode them with encode_records().")
        place = _HEADER.size
        values = []
        for length in (works, sizes):
            values.append(np.frombuffer(data, "<f8", length, place).astype(np.float64))
            place += 8 * length
        columns = []
        for width in widths:
            columns.append(np.frombuffer(data, f"<u{width}", count, place).astype(np.int64))
            place += width * count
        current, destination, home, work_position, size_position, counts = columns
        return KeyRecords(
            current.astype(np.int32),
            destination.astype(np.int32),
            home.astype(np.int32),
            values[0][work_position],
            values[1][size_position],
            counts,
        )
    except (struct.error, IndexError, ValueError) as cause:
        if isinstance(cause, InvalidWorkload):
            raise
        raise InvalidWorkload(f"bytes are no records: {cause}. Encode them with encode_records().") from cause


def raw_bytes(keys: int) -> int:
    """The bytes of a report without records: hash, work and size of every key as 8 bytes, home as 2."""
    return keys * (8 + 8 + 8 + 2)


def _width(column: NDArray[np.signedinteger]) -> int:
    most = int(column.max()) if len(column) else 0
    return next(width for width in _WIDTHS if most < 256**width)
