"""The signed beginning of an object.

    magic 8 | format version u16 | header length u32 | header (JSON) | HMAC-SHA256 32 | CRC-32 u32 | zeros | parts

Numbers are little-endian. The header holds the object's key, its size, the SHA-256 of every part and where it is; the
HMAC covers everything before it, so one short signature authenticates the whole object under this key. The CRC covers
everything before it too: it tells damage (wrong CRC) from a foreign signature (right CRC). Parts start at
multiples of 64 bytes, with zeros between them.

Format version 2 has two HMACs, by two secrets, either of which is enough: only while a job gets a new secret (see
`storage.state.resigning`).
"""

import hashlib
import hmac
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from storage.codec.json_documents import to_canonical_json
from storage.codec.payload import JSON, align, as_bytes_view
from storage.codec.secret import Secret
from storage.errors import DamagedObject, ForeignObject, InvalidStorageInput, NewerFormat
from storage.stores.protocol import Bytes

FORMAT_VERSION = 2  # the newest that is read; objects with one signature are written in format 1
HEADER_GUESS_BYTES = 64 * 1024  # the header of some 250 parts; no slower to fetch from a server than a kilobyte

_MAGIC = b"\x89elastic"
_FIXED = struct.Struct("<8sHI")
_CRC = struct.Struct("<I")
_SIGNATURE_BYTES = hashlib.sha256().digest_size
_MAX_HEADER_BYTES = 256 * 1024 * 1024  # so that a flipped bit in its length does not make a reader fetch gigabytes

RESTORE = "Restore an older snapshot; the bytes changed after they were written, or were never all written."
UPDATE = "Update spark-elastic here to the version that wrote it."


class HeaderTooShort(DamagedObject):
    """The bytes end within the header: fetch `needed` bytes and try again. If there are no more, this is the damage."""

    def __init__(self, key: str, needed: int, there: int) -> None:
        self.needed = needed
        super().__init__(key, f"its header takes {needed} bytes, and there are only {there}", RESTORE)


@dataclass(frozen=True)
class Part:
    """Where one part of an object is, and how its bytes become a value; `offset` counts from the object's start."""

    name: str
    codec: str
    compression: str
    offset: int
    stored_size: int
    raw_size: int
    digest: bytes
    detail: Any = field(repr=False)

    @property
    def stop(self) -> int:
        return self.offset + self.stored_size


@dataclass(frozen=True)
class Header:
    """What an object of `size` bytes holds, read from its first `length` bytes.

    Only `read_header` creates headers, after it has verified them.
    """

    key: str
    length: int
    size: int
    meta: Mapping[str, Any]
    parts: Mapping[str, Part]


def seal_header(key: str, meta: Mapping[str, JSON], parts: Sequence[Part], secret: Secret) -> bytes:
    """Return the signed header, padded to where the first part starts; the offsets of `parts` count from its end.

    Its length does not depend on the digests, so it is known before they are.
    """
    entries = [vars(part) | {"digest": part.digest.hex()} for part in parts]
    size = parts[-1].stop if parts else 0
    try:
        text = to_canonical_json({"key": key, "meta": meta, "parts": entries, "size": size})
    except (TypeError, ValueError) as error:
        raise InvalidStorageInput(f"the metadata of {key!r} is not JSON: {error}. Use plain JSON only.") from error
    if len(text) > _MAX_HEADER_BYTES:
        raise InvalidStorageInput(f"{key!r} has {len(parts)} parts, more than a header can list. Store it as several.")
    return _seal(text, [secret])


def _seal(text: bytes, secrets: Sequence[Secret]) -> bytes:
    """Sign the text of a header with every secret; the number of signatures is the format version."""
    signed = _FIXED.pack(_MAGIC, len(secrets), len(text)) + text
    sealed = signed + b"".join(secret.sign(signed) for secret in secrets)
    sealed += _CRC.pack(zlib.crc32(sealed))
    return sealed.ljust(align(len(sealed)), b"\0")


def reseal_header(prefix: Bytes, header: Header, secrets: Sequence[Secret]) -> bytes:
    """Return the same header, which `read_header` verified in `prefix`, signed with one or two other secrets."""
    view = as_bytes_view(prefix)
    _, length = _read_fixed(view, header.key)
    return _seal(bytes(view[_FIXED.size : _FIXED.size + length]), secrets)


def find_signers(prefix: Bytes, header: Header, secrets: Sequence[Secret]) -> list[Secret | None]:
    """Return for each signature of a verified header which of the secrets made it; None if none of them did."""
    view = as_bytes_view(prefix)
    count, length = _read_fixed(view, header.key)
    signed = _FIXED.size + length
    signatures = _signatures(view, signed, count)
    by_signature = {secret.sign(view[:signed]): secret for secret in secrets}
    return [by_signature.get(bytes(signature)) for signature in signatures]


def read_header(prefix: Bytes, *, key: str, secret: Secret) -> Header:
    """Verify the header of the object stored under `key`, then parse it.

    `HEADER_GUESS_BYTES` are enough for most objects; `HeaderTooShort` says how many others need.
    """
    view = as_bytes_view(prefix)
    count, length = _read_fixed(view, key)
    signed = _FIXED.size + length
    end = signed + count * _SIGNATURE_BYTES + _CRC.size
    if len(view) < end:
        raise HeaderTooShort(key, end, len(view))
    (checksum,) = _CRC.unpack(view[end - _CRC.size : end])
    if zlib.crc32(view[: end - _CRC.size]) != checksum:
        raise DamagedObject(key, "its header does not match its checksum", RESTORE)
    mine = secret.sign(view[:signed])
    if not any(hmac.compare_digest(mine, signature) for signature in _signatures(view, signed, count)):
        reason = "it is not signed with this application's secret"
        raise ForeignObject(key, reason, "Use the secret that it was written with.")
    document = json.loads(bytes(view[_FIXED.size : signed]))
    if document["key"] != key:
        reason = f"it is signed for another key, {document['key']!r}"
        raise ForeignObject(key, reason, "Restore the object of this key; none can move to another key.")
    return _parse_header(document, end)


def _signatures(view: memoryview, signed: int, count: int) -> list[memoryview]:
    starts = range(signed, signed + count * _SIGNATURE_BYTES, _SIGNATURE_BYTES)
    return [view[start : start + _SIGNATURE_BYTES] for start in starts]


def _read_fixed(view: memoryview, key: str) -> tuple[int, int]:
    """Return the number of signatures and the length of the header, after checks of magic and format version."""
    begin = bytes(view[: len(_MAGIC)])
    if not _MAGIC.startswith(begin):
        raise ForeignObject(key, "it is not an object of spark-elastic", "Keep other files out of the store's folder.")
    if len(view) < _FIXED.size:
        raise HeaderTooShort(key, _FIXED.size, len(view))
    _, version, length = _FIXED.unpack(view[: _FIXED.size])
    if version > FORMAT_VERSION:
        reason = f"it is written in format {version}, and this version reads formats up to {FORMAT_VERSION}"
        raise NewerFormat(key, reason, UPDATE)
    if version == 0 or length > _MAX_HEADER_BYTES:
        raise DamagedObject(key, f"format {version} with a header of {length} bytes is impossible", RESTORE)
    return int(version), int(length)


def _parse_header(document: Any, length: int) -> Header:
    start = align(length)
    parts = {}
    for entry in document["parts"]:
        entry["digest"] = bytes.fromhex(entry["digest"])
        entry["offset"] += start
        parts[entry["name"]] = Part(**entry)
    return Header(document["key"], length, start + document["size"], document["meta"], parts)
