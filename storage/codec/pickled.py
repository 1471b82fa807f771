"""Codec "pickle": everything else, with cloudpickle. The envelope verifies the bytes before they are loaded."""

import pickle
import sys
from collections.abc import Mapping, Sequence, Set
from itertools import islice
from typing import Any

import cloudpickle

from storage.codec.payload import Codec, Payload, align_pieces, as_bytes_view

_OUT_OF_BAND_BYTES = 64 * 1024  # buffers this large stay out of the pickle: not copied, and few enough to list
_SAMPLE = 100  # elements of a container from which the size of all is estimated
_DEPTH = 4  # levels of containers and attributes that an estimate looks into


def encode(value: object) -> Payload:
    """Encode the pickle, then the large buffers within the value (arrays, tables), without copying them."""
    out_of_band: list[memoryview] = []

    def keep_in_band(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if len(raw) < _OUT_OF_BAND_BYTES:
            return True
        out_of_band.append(raw)
        return False

    pickle_bytes = cloudpickle.dumps(value, protocol=5, buffer_callback=keep_in_band)
    pieces, offsets = align_pieces([memoryview(pickle_bytes), *map(as_bytes_view, out_of_band)])
    places = [[offset, len(piece)] for offset, piece in zip(offsets, pieces[1::2], strict=True)]
    return Payload.from_pieces(pieces, places)


def decode(data: memoryview, places: Any) -> object:
    pickle_bytes, *out_of_band = (data[offset : offset + size] for offset, size in places)
    # Copies, because an array inside a user's object must be writable again.
    return pickle.loads(pickle_bytes, buffers=map(bytearray, out_of_band))  # noqa: S301


def estimate_size(value: object, depth: int = _DEPTH) -> int:
    """Sum up what containers and attributes hold, from a sample of each: a rough estimate."""
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth == 0 or isinstance(value, str | bytes | bytearray):
        return sys.getsizeof(value)
    if isinstance(value, Mapping):
        entries = [
            estimate_size(key, depth - 1) + estimate_size(value[key], depth - 1) for key in islice(value, _SAMPLE)
        ]
        return _extrapolate(entries, len(value))
    if isinstance(value, Sequence | Set):
        return _extrapolate([estimate_size(element, depth - 1) for element in islice(value, _SAMPLE)], len(value))
    attributes = getattr(value, "__dict__", None)
    own = sys.getsizeof(value)
    return own if not attributes or isinstance(value, type) else own + estimate_size(attributes, depth - 1)


def _extrapolate(sizes: list[int], length: int) -> int:
    return sum(sizes) * length // max(len(sizes), 1)


CODEC = Codec(encode, decode, estimate_size)
