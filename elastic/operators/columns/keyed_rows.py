"""Keys with columns, and the rows that each of them owns."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from elastic.operators.columns.keyed_columns import KeyedColumns
from elastic.operators.columns.row_store import RowStore


@dataclass
class KeyedRows:
    """The state of an operator that keeps rows: the owner of a row in `rows` is the number of its key in `keys`."""

    keys: KeyedColumns
    rows: RowStore

    @property
    def nbytes(self) -> int:
        return self.keys.nbytes + self.rows.nbytes

    def keep_keys(self, is_kept: NDArray[np.bool_]) -> None:
        """Drop all other keys, which own no rows."""
        self.keys = self.keys.select(is_kept)
        self.rows.renumber(np.cumsum(is_kept) - 1)

    def part(self, is_parted: NDArray[np.bool_]) -> Self:
        """Take these keys out with their rows, and return them."""
        part = type(self)(self.keys, self._rows_of(is_parted))
        part.keep_keys(is_parted)
        if len(part.keys):
            self.rows = self._rows_of(~is_parted)
            self.keep_keys(~is_parted)
        return part

    def _rows_of(self, is_owner: NDArray[np.bool_]) -> RowStore:
        return self.rows.select(is_owner[self.rows.owners] & self.rows.is_live)
