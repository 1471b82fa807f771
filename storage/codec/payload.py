"""The interface of codecs, and payloads: encoded values in pieces, so that their bytes are copied only once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias

import pyarrow as pa

from storage.stores.protocol import Bytes

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

ALIGNMENT_BYTES = 64  # what Arrow recommends: whole cache lines, and enough for every SIMD instruction


@dataclass(frozen=True)
class Payload:
    """An encoded value.

    `write` writes the same number of bytes to every sink. `bulk` is most of what it writes, for sampling only.
    `detail` is what `decode` needs beyond the bytes; the signed header holds it.
    """

    write: Callable[[pa.NativeFile], None]
    bulk: Sequence[memoryview]
    detail: JSON = None

    @classmethod
    def from_pieces(cls, pieces: Sequence[memoryview], detail: JSON = None) -> Self:
        """Return a payload that writes the pieces one after the other."""

        def write(sink: pa.NativeFile) -> None:
            for piece in pieces:
                sink.write(piece)

        return cls(write, pieces, detail)

    @cached_property
    def size(self) -> int:
        """The number of bytes that `write` writes, counted by writing to nowhere."""
        counter = pa.MockOutputStream()
        self.write(counter)
        return int(counter.size())


class Codec(NamedTuple):
    """One way to turn some values into bytes and back.

    `encode` returns None for a value that this codec would not preserve; then the next codec is tried. `decode` takes
    verified bytes and the detail. `estimate_size` cheaply estimates the bytes; None for a value of another codec.
    """

    encode: Callable[[object], Payload | None]
    decode: Callable[[memoryview, Any], object]
    estimate_size: Callable[[object], int | None]


def as_bytes_view(data: Bytes | pa.Buffer) -> memoryview:
    """Return a view of the same memory as single bytes."""
    return memoryview(data).cast("B")


def align(offset: int) -> int:
    """Return the next offset at which a part or a buffer may start."""
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def align_pieces(pieces: Sequence[memoryview]) -> tuple[list[memoryview], list[int]]:
    """Return the pieces with zeros between them, so that each starts aligned, and the offset of each."""
    padded: list[memoryview] = []
    offsets = []
    end = 0
    for piece in pieces:
        start = align(end)
        padded += [memoryview(bytes(start - end)), piece]
        offsets.append(start)
        end = start + len(piece)
    return padded, offsets
