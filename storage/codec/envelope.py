"""Objects: several named parts in one signed piece of memory, verified before any part is used."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from storage.codec.codecs import CODECS, encode
from storage.codec.compression import COMPRESSIONS, compress, decompress
from storage.codec.header import RESTORE, UPDATE, Header, Part, read_header, seal_header
from storage.codec.payload import JSON, Payload, align, as_bytes_view
from storage.codec.secret import Secret
from storage.errors import DamagedObject, InvalidStorageInput, NewerFormat, UnloadableState, UnstorableState
from storage.stores.protocol import Bytes

_WORD_BYTES = 8  # Arrow and NumPy want their numbers to start at multiples of it


@dataclass(frozen=True)
class Unpacked:
    """A verified object. Each part is decoded when it is first used."""

    meta: Mapping[str, Any]
    parts: Mapping[str, Any]


def pack(
    parts: Mapping[str, object],
    *,
    key: str,
    secret: Secret,
    compression: str = "auto",
    meta: Mapping[str, JSON] | None = None,
) -> memoryview:
    """Return the parts as one object, signed for `key`; `UnstorableState` names a part that cannot become bytes.

    Each part is written once, directly to its place; only compressed ones are copied there. Copying, hashing and
    compressing release the interpreter lock.
    """
    meta = dict(meta or {})
    planned: list[tuple[Part, Payload]] = []
    end = 0
    for name, value in parts.items():
        part, payload = _plan_part(name, value, key, compression, align(end))
        planned.append((part, payload))
        end = part.stop
    unhashed = [part for part, _ in planned]
    start = len(seal_header(key, meta, unhashed, secret))
    memory = as_bytes_view(pa.allocate_buffer(start + end))
    body = memory[start:]
    for gap in _gaps(0, unhashed, end):
        body[gap] = bytes(gap.stop - gap.start)
    hashed = [_write_part(part, payload, body) for part, payload in planned]
    memory[:start] = seal_header(key, meta, hashed, secret)
    return memory.toreadonly()


def _plan_part(name: str, value: object, key: str, compression: str, offset: int) -> tuple[Part, Payload]:
    """Return the part without its digest, and its bytes."""
    try:
        codec, raw = encode(value)
    except MemoryError:
        raise
    except Exception as error:  # a user's object may raise anything when it is pickled
        raise UnstorableState(key, name, type(value), error) from error
    used, stored = compress(raw, compression)
    unknown = bytes(hashlib.sha256().digest_size)
    return Part(name, codec, used, offset, stored.size, raw.size, unknown, raw.detail), stored


def _write_part(part: Part, payload: Payload, body: memoryview) -> Part:
    place = body[part.offset : part.stop]
    with pa.FixedSizeBufferWriter(pa.py_buffer(place)) as sink:
        payload.write(sink)
    return replace(part, digest=hashlib.sha256(place).digest())


def _gaps(begin: int, parts: Iterable[Part], end: int) -> Iterator[slice]:
    """Yield the bytes between parts. They must be zero, so that the signature covers the whole object."""
    for part in parts:
        yield slice(begin, part.offset)
        begin = part.stop
    yield slice(begin, end)


def unpack(data: Bytes, *, key: str, secret: Secret) -> Unpacked:
    """Verify a whole object and return its parts; `BadObject` if it differs from what was written.

    Tables, arrays and memoryviews are read-only views of `data` unless it is compressed: do not change it while they
    are used.
    """
    view = as_bytes_view(data)
    header = read_header(view, key=key, secret=secret)
    if len(view) != header.size:
        raise DamagedObject(key, f"it has {len(view)} bytes instead of {header.size}", RESTORE)
    if any(any(view[gap]) for gap in _gaps(header.length, header.parts.values(), header.size)):
        raise DamagedObject(key, "there are bytes between its parts", RESTORE)
    stored = {name: _verify(header, name, view[part.offset : part.stop]) for name, part in header.parts.items()}
    return Unpacked(header.meta, _Parts(header, stored))


def unpack_part(header: Header, name: str, stored: Bytes) -> Any:
    """Verify and decode one part from its own bytes, `offset` to `stop` of the object."""
    if name not in header.parts:
        known = ", ".join(map(repr, header.parts)) or "none"
        raise InvalidStorageInput(f"{header.key!r} has no part {name!r}. It has {known}.")
    return _decode(header, name, _verify(header, name, as_bytes_view(stored)))


class _Parts(Mapping[str, Any]):
    """Parts whose bytes are verified; each is decoded once, when it is first used."""

    def __init__(self, header: Header, stored: dict[str, memoryview]) -> None:
        self._header = header
        self._stored = stored
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = _decode(self._header, name, self._stored[name])
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _verify(header: Header, name: str, stored: memoryview) -> memoryview:
    part = header.parts[name]
    if len(stored) != part.stored_size:
        reason = f"part {name!r} has {len(stored)} bytes instead of {part.stored_size}"
        raise DamagedObject(header.key, reason, RESTORE)
    if hashlib.sha256(stored).digest() != part.digest:
        raise DamagedObject(header.key, f"part {name!r} does not match its checksum", RESTORE)
    return stored


def _decode(header: Header, name: str, verified: memoryview) -> Any:
    part = header.parts[name]
    if part.codec not in CODECS or part.compression not in COMPRESSIONS:
        reason = f"part {name!r} is written as {part.codec} under {part.compression}, unknown to this version"
        raise NewerFormat(header.key, reason, UPDATE)
    raw = decompress(_align_to_words(verified), part.compression, part.raw_size)
    try:
        return CODECS[part.codec].decode(raw, part.detail)
    except MemoryError:
        raise
    except Exception as error:  # a user's class may be gone, or raise anything when it is rebuilt
        raise UnloadableState(header.key, name, error) from error


def _align_to_words(data: memoryview) -> memoryview:
    """Return the bytes at an address that is a multiple of a word; copied only if a caller sliced them unaligned."""
    return data if pa.py_buffer(data).address % _WORD_BYTES == 0 else memoryview(bytes(data))
