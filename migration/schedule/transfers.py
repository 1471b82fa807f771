"""The parts of a schedule: pieces of moves that travel together, and the moves grouped by sender and receiver."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from migration.errors import InvalidSchedule
from migration.model.moves import Move

Pair = tuple[str, str]  # sender, receiver


@dataclass(frozen=True, slots=True)
class Transfer:
    """The part [start, stop) of a move's state, in the unit of its size; [0, size) is the whole move.

    Invariant: 0 <= start < stop <= size, so a part is never empty, unless the whole state is: [0, 0).
    """

    move: Move
    start: float
    stop: float

    def __post_init__(self) -> None:
        if not (0 <= self.start < self.stop <= self.move.size or self.start == self.stop == self.move.size == 0):
            raise InvalidSchedule(f"[{self.start:g}, {self.stop:g}) is no part of {self.move}. Stay within its size.")

    @classmethod
    def whole(cls, move: Move) -> Self:
        return cls(move, 0, move.size)

    @property
    def size(self) -> float:
        return self.stop - self.start

    @property
    def is_last(self) -> bool:
        """Whether the move is complete when this part has arrived, if the parts travel in order."""
        return self.stop == self.move.size


@dataclass(frozen=True)
class TransferPhase:
    """Transfers that may all be under way at once; the next phase starts when they have arrived.

    Invariant: there is at least one, and no task has two. How many of them may share a node depends on the schedule.
    """

    transfers: tuple[Transfer, ...]

    def __post_init__(self) -> None:
        if not self.transfers:
            raise InvalidSchedule("a phase has no transfers. Remove it.")
        if len({transfer.move.task for transfer in self.transfers}) < len(self.transfers):
            raise InvalidSchedule("a phase has two transfers of one task. Merge them.")

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves that are complete after this phase; every move appears in one phase of a schedule."""
        return tuple(transfer.move for transfer in self.transfers if transfer.is_last)

    @cached_property
    def duration(self) -> float:
        """The most that one node sends or receives: the time of the phase if a node does both at a speed of one."""
        sent: dict[str, float] = defaultdict(float)
        received: dict[str, float] = defaultdict(float)
        for transfer in self.transfers:
            sent[transfer.move.source] += transfer.size
            received[transfer.move.target] += transfer.size
        return max(*sent.values(), *received.values())


def check_moves(moves: Iterable[Move]) -> tuple[Move, ...]:
    """Return the moves; raise unless every task moves once and all sizes can be added up."""
    moves = tuple(moves)
    tasks = set()
    for move in moves:
        if move.task in tasks:
            raise InvalidSchedule(f"task {move.task} moves twice. Schedule the moves of one plan at a time.")
        tasks.add(move.task)
        if not move.size >= 0:
            raise InvalidSchedule(f"{move} has an invalid size. Give sizes that are not negative.")
    if not math.isfinite(sum(move.size for move in moves)):
        raise InvalidSchedule("the sum of all sizes is not finite. Use a larger unit.")
    return moves


def group_by_pair(moves: Iterable[Move]) -> dict[Pair, list[Move]]:
    """Group moves by (sender, receiver): pairs in order of appearance, moves in the order given."""
    pairs: dict[Pair, list[Move]] = {}
    for move in moves:
        pairs.setdefault((move.source, move.target), []).append(move)
    return pairs
