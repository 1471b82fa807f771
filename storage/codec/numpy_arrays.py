"""Codec "numpy": an array, or a dict of arrays by name, as plain memory.

Arrays come back as read-only views of the object's memory; `array.copy()` gives one to write to. Arrays of objects,
structured arrays and subclasses go to another codec.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.codec.payload import Codec, Payload, laid_out

Array = NDArray[Any]

_PLAIN_KINDS = "biufcmMSUV"  # numbers, times, text and bytes of fixed width: their memory is all there is to them


def encode(value: object) -> Payload | None:
    arrays = _named(value)
    if arrays is None or not all(map(_plain, arrays.values())):
        return None
    # What is neither in C nor in Fortran order has gaps, or steps backwards: it is stored in C order.
    packed = [array if array.flags.forc else array.copy(order="C") for array in arrays.values()]
    pieces, offsets = laid_out([array.ravel(order="K").view(np.uint8).data for array in packed])
    described = [
        [name, array.dtype.str, list(array.shape), "C" if array.flags.c_contiguous else "F", offset]
        for name, array, offset in zip(arrays, packed, offsets, strict=True)
    ]
    return Payload.of(pieces, {"dict": isinstance(value, dict), "arrays": described})


def _named(value: object) -> dict[str, Array] | None:
    """The arrays by name, if these are arrays; a single one has no name. Empty dicts are left to "mapping"."""
    if type(value) is np.ndarray:
        return {"": value}
    if type(value) is dict and value and all(type(array) is np.ndarray for array in value.values()):
        return value if set(map(type, value)) == {str} else None
    return None


def _plain(array: Array) -> bool:
    dtype = array.dtype
    return (
        dtype.kind in _PLAIN_KINDS
        and dtype.itemsize > 0
        and dtype.names is None
        and dtype.metadata is None
        and np.dtype(dtype.str) == dtype  # types of other libraries pass as raw bytes, and would come back as such
    )


def decode(data: memoryview, detail: Any, _columns: bool = False) -> Array | dict[str, Array]:
    frozen = data.toreadonly()
    arrays = {
        name: np.ndarray(tuple(shape), np.dtype(dtype), frozen, offset, order=order)
        for name, dtype, shape, order, offset in detail["arrays"]
    }
    return arrays if detail["dict"] else arrays[""]


def size_hint(value: object) -> int | None:
    arrays = _named(value)
    return None if arrays is None else sum(array.nbytes for array in arrays.values())


CODEC = Codec(encode, decode, size_hint)
