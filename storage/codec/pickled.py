"""Codec "pickle": everything else, with cloudpickle. The envelope verifies the bytes before they are loaded."""

import pickle
import sys
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Any

import cloudpickle

from storage.codec.payload import Codec, Payload, flat, laid_out

_BESIDE_BYTES = 64 * 1024  # buffers this large stay out of the pickle: not copied into it, and few enough to list
_SAMPLE = 100  # elements of a container from which the size of all is guessed
_DEPTH = 4  # levels of containers and attributes that a guess looks into


def encode(value: object) -> Payload:
    """The pickle, then the large buffers within the value (arrays, tables), each straight from where it is."""
    beside: list[memoryview] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if len(raw) < _BESIDE_BYTES:
            return True
        beside.append(raw)
        return False

    inside = cloudpickle.dumps(value, protocol=5, buffer_callback=keep_inside)
    pieces, offsets = laid_out([memoryview(inside), *map(flat, beside)])
    return Payload.of(pieces, [[offset, len(piece)] for offset, piece in zip(offsets, pieces[1::2], strict=True)])


def decode(data: memoryview, places: Any, _columns: bool = False) -> object:
    inside, *beside = (data[offset : offset + size] for offset, size in places)
    # Copies, because an array inside a user's object must be writable again.
    return pickle.loads(inside, buffers=map(bytearray, beside))  # noqa: S301


def size_hint(value: object, depth: int = _DEPTH) -> int:
    """Sums up what containers and attributes hold, from a sample of each; no more than a guess."""
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth == 0 or isinstance(value, str | bytes | bytearray):
        return sys.getsizeof(value)
    if isinstance(value, Mapping):
        entries = [size_hint(key, depth - 1) + size_hint(value[key], depth - 1) for key in islice(value, _SAMPLE)]
        return _scaled(entries, len(value))
    if isinstance(value, Sequence | Set):
        return _scaled([size_hint(element, depth - 1) for element in islice(value, _SAMPLE)], len(value))
    attributes = getattr(value, "__dict__", None)
    own = sys.getsizeof(value)
    return own if not attributes or isinstance(value, type) else own + size_hint(attributes, depth - 1)


def _scaled(sizes: list[int], length: int) -> int:
    return sum(sizes) * length // max(len(sizes), 1)


CODEC = Codec(encode, decode, size_hint)
