"""Codec "bytes": bytes as they are. A memoryview is decoded as a flat, read-only view of the object's memory."""

from collections.abc import Callable

from storage.codec.payload import Codec, Payload, as_bytes_view

_REBUILT: dict[str, Callable[[memoryview], object]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview.toreadonly,
}


def encode(value: object) -> Payload | None:
    kind = type(value).__name__
    if not isinstance(value, bytes | bytearray | memoryview) or kind not in _REBUILT:
        return None
    contiguous = value.tobytes() if isinstance(value, memoryview) and not value.c_contiguous else value
    return Payload.from_pieces([as_bytes_view(contiguous)], kind)


def decode(data: memoryview, kind: str) -> object:
    return _REBUILT[kind](data)


def estimate_size(value: object) -> int | None:
    return memoryview(value).nbytes if isinstance(value, bytes | bytearray | memoryview) else None


CODEC = Codec(encode, decode, estimate_size)
