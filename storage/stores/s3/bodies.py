"""The bodies of requests and answers, with their checksums."""

import base64
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from storage.stores.arguments import Deadline
from storage.stores.protocol import Bytes
from storage.stores.s3.failures import DamagedInTransit

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from urllib3 import HTTPResponse

_PIECE_BYTES = 256 * 1024  # larger pieces cost on https, which delivers 16 kB at a time


class WriteBody:
    """The bytes of one write, with an id of the write and a checksum that are stored as the object's metadata.

    The id tells a writer whose answer was lost that the object it finds is its own. The server checks the checksum
    (`x-amz-checksum-crc32`), and so does the reader, from the metadata: servers return their own only on request, some
    never, and for an object in parts it is a checksum of checksums.
    """

    def __init__(self, data: Bytes) -> None:
        self.view = memoryview(data).cast("B")
        self.write_id = uuid4().hex
        self.crc32 = zlib.crc32(self.view)

    @property
    def metadata(self) -> dict[str, str]:
        return {"write": self.write_id, "crc32": f"{self.crc32:08x}"}


def format_checksum(crc32: int) -> str:
    """Return a CRC32 in the format of S3's headers."""
    return base64.b64encode(crc32.to_bytes(4, "big")).decode()


class BodyReader:
    """Bytes as a file for boto3 to send: without a copy, in small pieces, and not beyond the deadline."""

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


def read_body(body: "StreamingBody", size: int, metadata: Mapping[str, str], deadline: Deadline) -> memoryview:
    """Return the whole body, checked against its length and, if the metadata has one, its checksum."""
    data = memoryview(bytearray(size))
    crc32 = position = 0
    with cast("AbstractContextManager[HTTPResponse]", body) as stream:  # missing in botocore's stubs
        while position < size:
            deadline.check()  # a server that trickles is as bad as one that is silent
            # read1 returns what is there: read would wait for a whole piece, however slowly its bytes trickle in.
            piece = stream.read1(min(_PIECE_BYTES, size - position))
            if not piece:
                raise ConnectionError(f"only {position} of {size} bytes arrived")
            data[position : position + len(piece)] = piece
            crc32 = zlib.crc32(piece, crc32)
            position += len(piece)
    expected = metadata.get("crc32")
    if expected is not None and expected != f"{crc32:08x}":
        raise DamagedInTransit(f"its CRC32 is {crc32:08x} and should be {expected}")
    return data.toreadonly()
