"""Codec "numpy": an array, or a dict of arrays by name, as plain memory.

Arrays are decoded as read-only views of the object's memory; `array.copy()` is writable. Arrays of objects,
structured arrays and subclasses go to another codec.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.codec.payload import Codec, Payload, align_pieces

Array = NDArray[Any]

_PLAIN_KINDS = "biufcmMSUV"  # numbers, times, text and bytes of fixed width: their memory is all there is to them


def encode(value: object) -> Payload | None:
    arrays = _arrays_by_name(value)
    if arrays is None or not all(map(_is_plain, arrays.values())):
        return None
    # An array in neither C nor Fortran order has gaps or negative strides: it is stored in C order.
    packed = [array if array.flags.forc else array.copy(order="C") for array in arrays.values()]
    pieces, offsets = align_pieces([array.ravel(order="K").view(np.uint8).data for array in packed])
    described = [
        [name, array.dtype.str, list(array.shape), "C" if array.flags.c_contiguous else "F", offset]
        for name, array, offset in zip(arrays, packed, offsets, strict=True)
    ]
    return Payload.from_pieces(pieces, {"dict": isinstance(value, dict), "arrays": described})


def _arrays_by_name(value: object) -> dict[str, Array] | None:
    """Return arrays by name, "" for a single one; None if these are no arrays. Empty dicts are left to "mapping"."""
    if type(value) is np.ndarray:
        return {"": value}
    if type(value) is dict and value and all(type(array) is np.ndarray for array in value.values()):
        return value if set(map(type, value)) == {str} else None
    return None


def _is_plain(array: Array) -> bool:
    dtype = array.dtype
    return (
        dtype.kind in _PLAIN_KINDS
        and dtype.itemsize > 0
        and dtype.names is None
        and dtype.metadata is None
        and np.dtype(dtype.str) == dtype  # types of other libraries look like raw bytes, and would be decoded as such
    )


def decode(data: memoryview, detail: Any) -> Array | dict[str, Array]:
    frozen = data.toreadonly()
    arrays = {
        name: np.ndarray(tuple(shape), np.dtype(dtype), frozen, offset, order=order)
        for name, dtype, shape, order, offset in detail["arrays"]
    }
    return arrays if detail["dict"] else arrays[""]


def estimate_size(value: object) -> int | None:
    arrays = _arrays_by_name(value)
    return None if arrays is None else sum(array.nbytes for array in arrays.values())


CODEC = Codec(encode, decode, estimate_size)
