"""The keys of keyed columns: rows of key columns <-> row numbers, in one of three shapes.

One column of words, one column of texts, or a composite: several columns, or structs, whose rows become fixed-size
texts of a word each. All three number keys in the order of first appearance, except that a null in a single column
comes after the other new keys of its batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as kinds

from elastic.operators.columns.composite_keys import CompositeKeys
from elastic.operators.columns.single_keys import SingleKeys
from elastic.operators.kernels import Words


class Keys(Protocol):
    """Different keys, numbered 0..count-1; a number, once given, stays until `keep`."""

    @property
    def count(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Bytes of `arrays()`."""

    def insert(self, columns: Sequence[pa.Array]) -> Words:
        """The row of every key; unknown ones get the next rows."""

    def find(self, columns: Sequence[pa.Array]) -> Words:
        """The row of every key, -1 where it has none."""

    def take(self, rows: Words | None) -> list[pa.Array]:
        """The key columns of some rows, or of all."""

    def keep(self, rows: Words) -> None:
        """Only these rows, renumbered in this order."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it takes to make them again; nothing that happens later changes it."""


def keys_of(types: Sequence[pa.DataType], arrays: Mapping[str, NDArray[Any]] | None = None) -> Keys:
    """Empty, or from what `arrays` gave."""
    if len(types) == 1 and not kinds.is_struct(types[0]):
        return SingleKeys(types[0], arrays)
    return CompositeKeys(types, arrays)
