"""What a codec is, and what it makes of a value: bytes that are not yet joined, so that they are copied only once."""

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
    """A value on its way to bytes.

    `write` gives the same number of bytes to every sink. `bulk` is most of what it writes, only to try compression on.
    `detail` is what `decode` needs beyond the bytes; it stands in the signed header.
    """

    write: Callable[[pa.NativeFile], None]
    bulk: Sequence[memoryview]
    detail: JSON = None

    @classmethod
    def of(cls, pieces: Sequence[memoryview], detail: JSON = None) -> Self:
        """The pieces one after the other."""

        def write(sink: pa.NativeFile) -> None:
            for piece in pieces:
                sink.write(piece)

        return cls(write, pieces, detail)

    @cached_property
    def size(self) -> int:
        """How many bytes `write` writes, found by writing to nowhere."""
        counter = pa.MockOutputStream()
        self.write(counter)
        return int(counter.size())


class Codec(NamedTuple):
    """One way to turn some values into bytes and back.

    `encode` answers None for a value that this codec would not bring back as it was; the next one is asked then.
    `decode` gets verified bytes, the detail, and whether columns are wanted as they are (see `unpack`). `size_hint` is
    a cheap guess of the bytes, None for a value that is another codec's.
    """

    encode: Callable[[object], Payload | None]
    decode: Callable[[memoryview, Any, bool], object]
    size_hint: Callable[[object], int | None]


def flat(data: Bytes | pa.Buffer) -> memoryview:
    """The same memory as single bytes."""
    return memoryview(data).cast("B")


def aligned(offset: int) -> int:
    """The next offset at which a part or a buffer may start."""
    return -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def laid_out(pieces: Sequence[memoryview]) -> tuple[list[memoryview], list[int]]:
    """The pieces with zeros between them, so that each starts aligned, and where each starts."""
    filled: list[memoryview] = []
    offsets = []
    end = 0
    for piece in pieces:
        start = aligned(end)
        filled += [memoryview(bytes(start - end)), piece]
        offsets.append(start)
        end = start + len(piece)
    return filled, offsets
