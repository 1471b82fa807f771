"""Estimates of the size of a state from a sample of it."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any

# Entries sampled on each level: at most a few thousand values in total, however large the state is.
_SAMPLES = (64, 8, 4, 2)
_WORD_BYTES = 8
_LENGTH_BYTES = 4
_OBJECT_BYTES = 16  # overhead of an object in a pickle


def estimate_bytes(value: Any) -> int:
    """Estimate the bytes of a stored value; exact for tables and arrays, sampled for containers.

    Samples the oldest and the newest entries, which often differ in size. O(1) in the size of the state.
    """
    return _bytes(value, 0, in_column=False)


def _bytes(value: Any, level: int, *, in_column: bool) -> int:
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if value is None or isinstance(value, bool | int | float):
        return _WORD_BYTES if in_column or isinstance(value, float) else _pickled_integer(value or 0)
    if isinstance(value, str | bytes | bytearray):
        return _LENGTH_BYTES + len(value)
    if level == len(_SAMPLES):
        return sys.getsizeof(value)
    if isinstance(value, Mapping):
        # A dict of scalars is stored as two columns.
        pairs = _sample(value, level)
        return _scale([_bytes(each, level + 1, in_column=level == 0) for pair in pairs for each in pair], value)
    if isinstance(value, Sequence | Set):
        return _scale([_bytes(each, level + 1, in_column=False) for each in _sample(value, level)], value)
    return _OBJECT_BYTES + sum(_bytes(each, level + 1, in_column=False) for each in _attributes(value))


def _pickled_integer(value: int) -> int:
    """Return the size of a pickled integer: an opcode and its bytes."""
    return 2 + value.bit_length() // 8


def _attributes(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        yield from (getattr(value, name, None) for name in ([slots] if isinstance(slots, str) else slots))


def _sample(container: Any, level: int) -> Iterator[Any]:
    """Return the first and the last entries; all if they are few."""
    limit = _SAMPLES[level]
    entries: Any = container.items() if isinstance(container, Mapping) else container
    if len(container) <= limit or not hasattr(container, "__reversed__"):
        return islice(iter(entries), limit)
    return chain(islice(iter(entries), limit // 2), islice(reversed(entries), limit // 2))


def _scale(sizes: list[int], container: Collection[Any]) -> int:
    parts = 2 if isinstance(container, Mapping) else 1
    return sum(sizes) * len(container) * parts // max(len(sizes), 1)
