"""The bytes of one write on their way there, and of one read on their way back."""

import base64
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from storage.stores.protocol import Bytes
from storage.stores.s3.answers import DamagedInFlight
from storage.stores.s3.calls import Deadline

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from urllib3 import HTTPResponse

_PIECE = 256 * 1024  # of a body that is read; larger ones cost on https, which gives 16 kB at a time


class Payload:
    """One write. Its object says which write made it, and what its checksum is.

    The name of the write tells a writer whose answer was lost that the object it finds is its own. The checksum is the
    server's to check (`x-amz-checksum-crc32`), and the reader's: it travels as metadata, because servers give their own
    only on request, some give none, and for an object in parts it is a checksum of checksums.
    """

    def __init__(self, data: Bytes) -> None:
        self.view = memoryview(data).cast("B")
        self.write = uuid4().hex
        self.crc32 = zlib.crc32(self.view)

    @property
    def metadata(self) -> dict[str, str]:
        return {"write": self.write, "crc32": f"{self.crc32:08x}"}


def wire_checksum(crc32: int) -> str:
    """A CRC32 as S3's headers have it."""
    return base64.b64encode(crc32.to_bytes(4, "big")).decode()


class Outgoing:
    """Bytes as the file that boto3 likes to send: without a copy, in small pieces, and not beyond the deadline."""

    def __init__(self, view: memoryview, deadline: Deadline) -> None:
        self._view = view
        self._deadline = deadline
        self._position = 0

    def __len__(self) -> int:
        return len(self._view)

    def read(self, size: int = -1) -> memoryview:
        self._deadline.check()
        stop = len(self._view) if size < 0 else self._position + size
        piece = self._view[self._position : stop]
        self._position += len(piece)
        return piece

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, len(self._view))[whence]
        return self._position


def received(body: "StreamingBody", size: int, metadata: Mapping[str, str], deadline: Deadline) -> memoryview:
    """The whole body, checked against its length and, if it came with one, its checksum."""
    data = memoryview(bytearray(size))
    crc32 = position = 0
    with cast("AbstractContextManager[HTTPResponse]", body) as stream:  # botocore's stubs do not know what it enters
        while position < size:
            deadline.check()
            # read1 gives what is there: read would wait for a whole piece, however slowly its bytes trickle in.
            piece = stream.read1(min(_PIECE, size - position))
            if not piece:
                raise ConnectionError(f"only {position} of {size} bytes arrived")
            data[position : position + len(piece)] = piece
            crc32 = zlib.crc32(piece, crc32)
            position += len(piece)
    promised = metadata.get("crc32")
    if promised is not None and promised != f"{crc32:08x}":
        raise DamagedInFlight(f"its CRC32 is {crc32:08x} and should be {promised}")
    return data.toreadonly()
