"""Compact statistics (paper 000, section IV): records that stand for many keys of the same kind."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidWorkload
from migration.keys.loads import Floats, Nodes

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyRecords:
    """The paper's six-dimensional records (d, d', h, v_c, v_S, #) as columns.

    Each stands for `count` keys that are on node `current`, will be on node `destination`, and whose hash leads to
    node `home`; each of them has this `work` and this state `size`. In a report `destination` is `current`.

    Invariant: the first five columns are distinct and ascending in the order current, home, work, size, destination;
    counts are at least 1; work and sizes are finite and not negative; columns are read-only. There may be no record.
    """

    current: Nodes
    destination: Nodes
    home: Nodes
    work: Floats
    size: Floats
    count: Counts

    def __init__(
        self, current: Nodes, destination: Nodes, home: Nodes, work: Floats, size: Floats, count: Counts
    ) -> None:
        """Sort records, and add the counts of equal ones."""
        given: list[NDArray[Any]] = [np.asarray(column, np.int32) for column in (current, destination, home)]
        given += [np.asarray(column, np.float64) for column in (work, size)]
        given.append(np.asarray(count, np.int64))
        _check(given)
        for name, column in zip(_COLUMNS, _sum_equal(given), strict=True):
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    def assign(self, record: NDArray[np.int64], node: Nodes, count: Counts) -> Self:
        """The same records with `count[i]` keys of record `record[i]` at destination `node[i]`.

        Every key of every record must be given a destination once. Faster than the constructor, because records are
        already sorted by everything else.
        """
        width = int(node.max()) + 1
        code = record * width + node
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        chosen = record[order[starts]]
        answer = object.__new__(type(self))
        columns = (
            self.current[chosen],
            node[order[starts]].astype(np.int32),
            *(column[chosen] for column in (self.home, self.work, self.size)),
            np.add.reduceat(count[order], starts),
        )
        for name, column in zip(_COLUMNS, columns, strict=True):
            column.setflags(write=False)
            object.__setattr__(answer, name, column)
        return answer

    @classmethod
    def empty(cls) -> Self:
        nodes, amounts = np.empty(0, np.int32), np.empty(0)
        return cls(nodes, nodes, nodes, amounts, amounts, np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.count)

    @property
    def keys(self) -> int:
        """The number of keys that all records stand for."""
        return int(self.count.sum())

    @property
    def total_work(self) -> float:
        return float(self.work @ self.count)

    @property
    def total_size(self) -> float:
        return float(self.size @ self.count)

    @property
    def entries(self) -> int:
        """Keys whose destination is not home: entries of the routing table."""
        return int(self.count[self.destination != self.home].sum())

    @property
    def cost(self) -> float:
        """The state that moves."""
        moves = self.destination != self.current
        return float(self.size[moves] @ self.count[moves])

    def loads(self, node_count: int) -> Floats:
        """The work of every node with all keys at their destinations."""
        loads: Floats = np.bincount(self.destination, self.work * self.count, node_count).astype(np.float64)
        return loads

    def select(self, chosen: NDArray[np.bool_]) -> Self:
        return type(self)(*(column[chosen] for column in self.columns))

    @property
    def moves(self) -> Self:
        """Only the records whose destination is another node."""
        return self.select(self.destination != self.current)

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns, in the order of the constructor."""
        return self.current, self.destination, self.home, self.work, self.size, self.count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyRecords):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self.columns, other.columns, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(column.tobytes() for column in self.columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.columns

    def __str__(self) -> str:
        return f"{len(self):,} records of {self.keys:,} keys, work {self.total_work:g}, state {self.total_size:g}"


_COLUMNS = ("current", "destination", "home", "work", "size", "count")


def merge_records(*reports: KeyRecords) -> KeyRecords:
    """Merge the records of several nodes into one; counts of equal records are added. Associative and commutative."""
    if not reports:
        return KeyRecords.empty()
    return KeyRecords(*(np.concatenate(columns) for columns in zip(*(one.columns for one in reports), strict=True)))


def _check(columns: list[NDArray[Any]]) -> None:
    if any(column.ndim != 1 or len(column) != len(columns[0]) for column in columns):
        raise InvalidWorkload("the columns of records differ in length. Give one value for every record.")
    *nodes, work, size, count = columns
    if not len(count):
        return
    if any(column.min() < 0 for column in nodes):
        raise InvalidWorkload("a record has a negative node index. Give indices of nodes, counted from 0.")
    for column in (work, size):
        if not (column.min() >= 0 and column.max() < np.inf):
            raise InvalidWorkload("a record has work or size that is no finite number >= 0. Give such numbers.")
    if count.min() < 1:
        raise InvalidWorkload(f"a record stands for {count.min()} keys. Omit records without keys.")


def _sum_equal(columns: list[NDArray[Any]]) -> list[NDArray[Any]]:
    current, destination, home, work, size, count = columns
    order = np.lexsort((destination, size, work, home, current))
    ordered = [column[order] for column in (current, destination, home, work, size)]
    if not len(order):
        return [*ordered, count.copy()]
    is_first = np.zeros(len(order), np.bool_)
    is_first[0] = True
    for column in ordered:
        is_first[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(is_first)
    return [*(column[starts] for column in ordered), np.add.reduceat(count[order], starts)]
