"""The load of every key: its work, its state size, where its hash leads and where it is now."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidWorkload

Floats = NDArray[np.float64]
Hashes = NDArray[np.int64]
Nodes = NDArray[np.int32]
_Column = TypeVar("_Column", bound=np.generic)


@dataclass(frozen=True, eq=False)
class KeyLoads:
    """Columns with a row for every key: `hashes`, `home`, `current`, `work` c(k) and state `size` S(k).

    `home` is the index of the node that the key's hash leads to, `current` of the node that holds the key now; a key
    that is not at home has an entry in the routing table.

    Invariant: all columns are read-only and have one length K >= 1; hashes are distinct; node indices are not negative;
    work and sizes are finite and not negative, and so are their sums. Columns that the caller has already made
    read-only are shared, all others are copied. 32 bytes a key; checking takes O(K), plus a sort if hashes are not
    ascending.
    """

    hashes: Hashes
    home: Nodes
    current: Nodes
    work: Floats
    size: Floats

    def __init__(
        self,
        hashes: Iterable[int],
        home: Iterable[int],
        current: Iterable[int] | None,
        work: Iterable[float],
        size: Iterable[float] | None = None,
    ) -> None:
        """All keys are at home if `current` is None; sizes default to the work, as for counters."""
        names = _check_column("hashes", hashes, np.int64)
        homes = _check_column("home", home, np.int32)
        weights = _check_column("work", work, np.float64)
        columns: dict[str, NDArray[Any]] = {
            "hashes": names,
            "home": homes,
            "current": homes if current is None else _check_column("current", current, np.int32),
            "work": weights,
            "size": weights if size is None else _check_column("size", size, np.float64),
        }
        for name, column in columns.items():
            if len(column) != len(names):
                raise InvalidWorkload(
                    f"{name} has {len(column)} rows and hashes has {len(names)}. Give one value for every key."
                )
        for name in ("home", "current"):
            _check_not_negative(name, columns[name])
        for name in ("work", "size"):
            _check_amounts(name, columns[name])
        _check_distinct(names)
        for name, column in columns.items():
            object.__setattr__(self, name, column)

    @property
    def keys(self) -> int:
        return len(self.hashes)

    @property
    def total_work(self) -> float:
        return float(self.work.sum())

    @property
    def total_size(self) -> float:
        return float(self.size.sum())

    @property
    def entries(self) -> int:
        """Keys that are not at home: entries of the current routing table."""
        return int(np.count_nonzero(self.home != self.current))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyLoads):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._columns, other._columns, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(column.tobytes() for column in self._columns))

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilding through the constructor keeps the invariant (and the read-only flag) across pickling.
        return type(self), self._columns

    def __str__(self) -> str:
        return f"{self.keys:,} keys ({self.entries:,} not at home), work {self.total_work:g}, state {self.total_size:g}"

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return self.hashes, self.home, self.current, self.work, self.size


def _check_column(name: str, values: Iterable[Any], kind: type[_Column]) -> NDArray[_Column]:
    try:
        given = values if isinstance(values, np.ndarray) else np.array(list(values))
        if given.ndim != 1 or not len(given):
            raise InvalidWorkload(
                f"{name} has shape {given.shape}. Give one value for every key, and at least one key."
            )
        if given.dtype == kind and not given.flags.writeable and given.flags.c_contiguous:
            return given
        column = given.astype(kind)
    except (TypeError, ValueError, OverflowError) as cause:
        if isinstance(cause, InvalidWorkload):
            raise
        raise InvalidWorkload(f"{name} is not a list of numbers: {cause}. Give one number for every key.") from cause
    if given.dtype.kind not in ("iu" if issubclass(kind, np.integer) else "iuf") or (
        issubclass(kind, np.integer) and given.dtype != kind and not np.array_equal(column, given)
    ):
        raise InvalidWorkload(
            f"{name} has values that {np.dtype(kind)} cannot hold ({given.dtype}). Convert them first."
        )
    column.setflags(write=False)
    return column


def _check_not_negative(name: str, column: NDArray[Any]) -> None:
    if column.min() < 0:
        row = int(np.argmax(column < 0))
        raise InvalidWorkload(f"{name} of key {row} is {column[row]}. Give the index of a node, counted from 0.")


def _check_amounts(name: str, column: Floats) -> None:
    # A NaN makes both comparisons false, so that two passes without temporary arrays find every bad value.
    if not (column.min() >= 0 and column.max() < np.inf):
        row = int(np.argmax(~np.isfinite(column) | (column < 0)))
        raise InvalidWorkload(f"{name} of key {row} is {column[row]}. Give finite numbers that are not negative.")
    with np.errstate(over="ignore"):  # an overflow is refused by name
        total = column.sum()
    if not np.isfinite(total):
        raise InvalidWorkload(f"the sum of {name} overflows. Use a larger unit.")


def _check_distinct(hashes: Hashes) -> None:
    if (hashes[1:] > hashes[:-1]).all():
        return
    ordered = np.sort(hashes)
    same = ordered[1:] == ordered[:-1]
    if same.any():
        twice = int(ordered[np.argmax(same)])
        rows = np.flatnonzero(hashes == twice)[:2].tolist()
        raise InvalidWorkload(f"hash {twice} is given twice, for keys {rows}. Give every key one row.")


def is_amount(value: object) -> bool:
    """Whether a value is a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return 0 <= float(value) < math.inf
    except OverflowError:  # a whole number beyond all floats
        return False
