"""Codec "json": documents that people and other programs read too, such as manifests."""

import json
from dataclasses import dataclass
from typing import Any

from storage.codec.payload import JSON, Codec, Payload


@dataclass(frozen=True)
class Json:
    """Marks a document to be stored as JSON. Decoding returns the document without this wrapper."""

    document: JSON


def encode(value: object) -> Payload | None:
    return Payload.from_pieces([memoryview(to_canonical_json(value.document))]) if isinstance(value, Json) else None


def to_canonical_json(document: JSON) -> bytes:
    """Return the canonical text of a document; ValueError or TypeError if JSON would change it (tuples, NaN)."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if json.loads(text) != document:
        raise ValueError("JSON would change it: JSON has lists, no tuples, and only text as keys")
    return text.encode()


def decode(data: memoryview, _detail: Any = None) -> Any:
    return json.loads(bytes(data))


def estimate_size(value: object) -> int | None:
    return len(json.dumps(value.document, default=repr, skipkeys=True)) if isinstance(value, Json) else None


CODEC = Codec(encode, decode, estimate_size)
