"""Objects: several named parts in one piece of memory, verified before anything in them is used."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from storage.codec.codecs import CODECS, encoded
from storage.codec.compression import COMPRESSIONS, compressed, decompressed
from storage.codec.header import RESTORE, UPDATE, Header, Part, read_header, sealed_header
from storage.codec.payload import JSON, Payload, aligned, flat
from storage.codec.secret import Secret
from storage.errors import DamagedObject, InvalidStorageInput, NewerFormat, UnloadableState, UnstorableState
from storage.stores.protocol import Bytes

_WORD_BYTES = 8  # Arrow and NumPy want their numbers to start at multiples of it


@dataclass(frozen=True)
class Unpacked:
    """A verified object. A part is decoded when it is first asked for."""

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
    """The parts as one object, signed for the place `key`; `UnstorableState` names a part that cannot become bytes.

    Each part is written once, straight to its place; only compressed ones are copied there. Copying, hashing and
    compressing let other threads run.
    """
    meta = dict(meta or {})
    planned: list[tuple[Part, Payload]] = []
    end = 0
    for name, value in parts.items():
        part, payload = _planned(name, value, key, compression, aligned(end))
        planned.append((part, payload))
        end = part.stop
    unhashed = [part for part, _ in planned]
    start = len(sealed_header(key, meta, unhashed, secret))
    memory = flat(pa.allocate_buffer(start + end))
    body = memory[start:]
    for gap in _gaps(0, unhashed, end):
        body[gap] = bytes(gap.stop - gap.start)
    hashed = [_written(part, payload, body) for part, payload in planned]
    memory[:start] = sealed_header(key, meta, hashed, secret)
    return memory.toreadonly()


def _planned(name: str, value: object, key: str, compression: str, offset: int) -> tuple[Part, Payload]:
    """The part without its digest, and the bytes that will be its own."""
    try:
        codec, raw = encoded(value)
    except MemoryError:
        raise
    except Exception as error:  # a user's object may raise anything when it is pickled
        raise UnstorableState(key, name, type(value), error) from error
    used, stored = compressed(raw, compression)
    unknown = bytes(hashlib.sha256().digest_size)
    return Part(name, codec, used, offset, stored.size, raw.size, unknown, raw.detail), stored


def _written(part: Part, payload: Payload, body: memoryview) -> Part:
    place = body[part.offset : part.stop]
    with pa.FixedSizeBufferWriter(pa.py_buffer(place)) as sink:
        payload.write(sink)
    return replace(part, digest=hashlib.sha256(place).digest())


def _gaps(begin: int, parts: Iterable[Part], end: int) -> Iterator[slice]:
    """The bytes that belong to no part. They are zero: nothing in an object is without a signature."""
    for part in parts:
        yield slice(begin, part.offset)
        begin = part.stop
    yield slice(begin, end)


def unpack(data: Bytes, *, key: str, secret: Secret, columns: bool = False) -> Unpacked:
    """Verify a whole object, and give its parts; `BadObject` if anything about it is not as it was written.

    With `columns`, a dict of scalars comes as an Arrow table (key, value), and no object is made for an entry. Tables,
    arrays and memoryviews are read-only views of `data` unless it is compressed: do not change it while they are used.
    """
    view = flat(data)
    header = read_header(view, key=key, secret=secret)
    if len(view) != header.size:
        raise DamagedObject(key, f"it has {len(view)} bytes, and was written with {header.size}", RESTORE)
    if any(any(view[gap]) for gap in _gaps(header.length, header.parts.values(), header.size)):
        raise DamagedObject(key, "there is something between its parts", RESTORE)
    stored = {name: _verified(header, name, view[part.offset : part.stop]) for name, part in header.parts.items()}
    return Unpacked(header.meta, _Parts(header, stored, columns))


def unpack_part(header: Header, name: str, stored: Bytes, *, columns: bool = False) -> Any:
    """One part from its own bytes, `offset` to `stop` of the object, as a ranged get brings them."""
    if name not in header.parts:
        known = ", ".join(map(repr, header.parts)) or "none"
        raise InvalidStorageInput(f"{header.key!r} has no part {name!r}. It has {known}.")
    return _decoded(header, name, _verified(header, name, flat(stored)), columns)


class _Parts(Mapping[str, Any]):
    """Parts whose bytes are verified; each is decoded once, when it is first asked for."""

    def __init__(self, header: Header, stored: dict[str, memoryview], columns: bool) -> None:
        self._header = header
        self._stored = stored
        self._columns = columns
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = _decoded(self._header, name, self._stored[name], self._columns)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _verified(header: Header, name: str, stored: memoryview) -> memoryview:
    part = header.parts[name]
    if len(stored) != part.stored_size:
        reason = f"part {name!r} has {len(stored)} bytes, and was written with {part.stored_size}"
        raise DamagedObject(header.key, reason, RESTORE)
    if hashlib.sha256(stored).digest() != part.digest:
        raise DamagedObject(header.key, f"part {name!r} does not match its checksum", RESTORE)
    return stored


def _decoded(header: Header, name: str, verified: memoryview, columns: bool) -> Any:
    part = header.parts[name]
    if part.codec not in CODECS or part.compression not in COMPRESSIONS:
        reason = f"part {name!r} is written as {part.codec} under {part.compression}, unknown to this version"
        raise NewerFormat(header.key, reason, UPDATE)
    raw = decompressed(_word_aligned(verified), part.compression, part.raw_size)
    try:
        return CODECS[part.codec].decode(raw, part.detail, columns)
    except MemoryError:
        raise
    except Exception as error:  # a user's class may be gone, or raise anything when it is rebuilt
        raise UnloadableState(header.key, name, error) from error


def _word_aligned(data: memoryview) -> memoryview:
    """The same bytes at an address that is a multiple of a word, copied only if a caller cut them out askew."""
    return data if pa.py_buffer(data).address % _WORD_BYTES == 0 else memoryview(bytes(data))
