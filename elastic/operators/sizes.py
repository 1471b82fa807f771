"""How much a state weighs, without looking at all of it."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import chain, islice
from typing import Any

# Entries looked at on each level: at most a few thousand values in all, however large the state is.
_SAMPLES = (64, 8, 4, 2)
_WORD_BYTES = 8
_LENGTH_BYTES = 4
_OBJECT_BYTES = 16  # what a pickle spends on an object besides its attributes


def estimated_bytes(value: Any) -> int:
    """About the bytes that a value takes when stored; exact for tables and arrays, sampled for containers.

    Looks at the oldest and the newest entries, since those often differ in size. O(1) in the size of the state.
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
        pairs = _ends_of(value, level)
        return _scaled([_bytes(each, level + 1, in_column=level == 0) for pair in pairs for each in pair], value)
    if isinstance(value, Sequence | Set):
        return _scaled([_bytes(each, level + 1, in_column=False) for each in _ends_of(value, level)], value)
    return _OBJECT_BYTES + sum(_bytes(each, level + 1, in_column=False) for each in _attributes(value))


def _pickled_integer(value: int) -> int:
    """One byte for what it is, and the bytes that it needs."""
    return 2 + value.bit_length() // 8


def _attributes(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        yield from (getattr(value, name, None) for name in ([slots] if isinstance(slots, str) else slots))


def _ends_of(container: Any, level: int) -> Iterator[Any]:
    """The first and the last entries; all of them, if they are few."""
    most = _SAMPLES[level]
    entries: Any = container.items() if isinstance(container, Mapping) else container
    if len(container) <= most or not hasattr(container, "__reversed__"):
        return islice(iter(entries), most)
    return chain(islice(iter(entries), most // 2), islice(reversed(entries), most // 2))


def _scaled(sizes: list[int], container: Collection[Any]) -> int:
    parts = 2 if isinstance(container, Mapping) else 1
    return sum(sizes) * len(container) * parts // max(len(sizes), 1)
