"""Statistics of a node's keys in one interval, as its heartbeats carry them: the heaviest keys, and totals by unit.

The size of this is bounded: totals of every unit, and a limited number of keys. Keys that the key table of a stage
names are always among them.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from elastic.core.ids import UnitId


class UnitKeys(NamedTuple):
    """The keys of a unit in an interval: all of them together, the heaviest included.

    `rows` is exact. A count of rows of one of its keys may be too low by `error_rows`, unless the key was heavy in the
    interval before; it is 0 unless the unit had more keys than the node could count.
    """

    unit: UnitId
    interval_seconds: float  # how long the unit was on the node in this interval
    keys: int  # that had rows, as far as they were counted
    rows: int
    seconds: float  # of processing
    state_bytes: int
    error_rows: int = 0


class KeyColumns(NamedTuple):
    """The heaviest keys as columns of one length; `units` are positions in `KeyStatistics.units`."""

    hashes: npt.NDArray[np.int64]
    units: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    state_bytes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, *columns: Sequence[Any] | npt.NDArray[Any]) -> Self:
        """Return columns of the right types."""
        return cls(*(np.asarray(column, kind) for column, kind in zip(columns, _TYPES, strict=True)))

    def select(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return some of the keys."""
        return self.of(*(column[chosen] for column in self))


_TYPES = (np.int64, np.int32, np.int64, np.float64, np.int64)
NO_KEYS = KeyColumns.of(*([] for _ in _TYPES))


@dataclass(frozen=True, eq=False)
class KeyStatistics:
    """One complete interval of one node, the `interval`-th of its incarnation.

    Rows of a key are exact if `stride` is 1; else their standard error is `sqrt((stride - 1) * rows)`.

    In JSON the columns are base64: writing and reading them as numbers would cost a driver with many nodes more than
    all other messages. They are decoded when they are first read, since most heartbeats are replaced unread.
    """

    interval: int
    seconds: float
    units: tuple[UnitKeys, ...]
    encoded: tuple[str, ...] = field(repr=False)
    names: Mapping[int, str] = field(default_factory=dict, repr=False)  # of the heaviest, by their place in the columns
    batches: int = 0  # that the node has completed in the interval
    stride: int = 1  # one of so many rows was counted
    groupings_epoch: int = 0  # of the groupings that held for the whole of the interval
    part_bytes: Mapping[int, float] = field(default_factory=dict)  # by stage: of a part besides the keys that move

    @classmethod
    def of(
        cls,
        interval: int,
        seconds: float,
        units: tuple[UnitKeys, ...],
        columns: KeyColumns,
        names: Mapping[int, str] | None = None,
        batches: int = 0,
        stride: int = 1,
        groupings_epoch: int = 0,
        part_bytes: Mapping[int, float] | None = None,
    ) -> Self:
        encoded = tuple(b64encode(column.tobytes()).decode("ascii") for column in columns)
        return cls(interval, seconds, units, encoded, names or {}, batches, stride, groupings_epoch, part_bytes or {})

    @cached_property
    def columns(self) -> KeyColumns:
        return KeyColumns(
            *(np.frombuffer(b64decode(text), kind) for text, kind in zip(self.encoded, _TYPES, strict=True))
        )

    def to_json(self) -> list[Any]:
        units = [[one.unit.number, *one[1:]] for one in self.units]
        names = [list(pair) for pair in self.names.items()]
        parts = [list(pair) for pair in self.part_bytes.items()]
        numbers = [self.batches, self.stride, self.groupings_epoch]
        return [self.interval, self.seconds, units, list(self.encoded), names, parts, *numbers]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        interval, seconds, units, encoded, names, parts, batches, stride, epoch = document
        decoded = tuple(UnitKeys(UnitId.from_number(number), *rest) for number, *rest in units)
        return cls(interval, seconds, decoded, tuple(encoded), dict(names), batches, stride, epoch, dict(parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyStatistics):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.interval, self.encoded))
