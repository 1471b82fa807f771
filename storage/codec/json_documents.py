"""Codec "json": documents that other programs and people read too, such as manifests."""

import json
from dataclasses import dataclass
from typing import Any

from storage.codec.payload import JSON, Codec, Payload


@dataclass(frozen=True)
class Json:
    """Says that a document is to be stored as JSON. What comes back is the document, without this wrapper."""

    document: JSON


def encode(value: object) -> Payload | None:
    return Payload.of([memoryview(canonical(value.document))]) if isinstance(value, Json) else None


def canonical(document: JSON) -> bytes:
    """The one text of a document; `ValueError` or `TypeError` if it would come back changed (tuples, NaN)."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if json.loads(text) != document:
        raise ValueError("it would come back changed: JSON has lists, no tuples, and only text as keys")
    return text.encode()


def decode(data: memoryview, _detail: Any = None, _columns: bool = False) -> Any:
    return json.loads(bytes(data))


def size_hint(value: object) -> int | None:
    return len(json.dumps(value.document, default=repr, skipkeys=True)) if isinstance(value, Json) else None


CODEC = Codec(encode, decode, size_hint)
