"""What a schedule is made of: parts of moves that travel together."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from migration.errors import InvalidSchedule
from migration.model.moves import Move


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
    def last(self) -> bool:
        """Whether the move is done when this part has arrived, if the parts travel in order."""
        return self.stop == self.move.size


@dataclass(frozen=True)
class Phase:
    """Transfers that may all be under way at once; the next phase starts when they have arrived.

    Invariant: there is at least one, and no task has two. How many of them may share a node is its schedule's promise.
    """

    transfers: tuple[Transfer, ...]

    def __post_init__(self) -> None:
        if not self.transfers:
            raise InvalidSchedule("a phase without transfers. Leave it out.")
        if len({transfer.move.task for transfer in self.transfers}) < len(self.transfers):
            raise InvalidSchedule("a phase with two transfers of one task. Join them.")

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves that are done after this phase. Over all phases of a schedule, every move appears once."""
        return tuple(transfer.move for transfer in self.transfers if transfer.last)

    @cached_property
    def duration(self) -> float:
        """The most that one node sends, or receives: the time it takes if a node can do both at a speed of one.

        Derived, so that it cannot contradict the transfers.
        """
        sent: dict[str, float] = defaultdict(float)
        received: dict[str, float] = defaultdict(float)
        for transfer in self.transfers:
            sent[transfer.move.source] += transfer.size
            received[transfer.move.target] += transfer.size
        return max(*sent.values(), *received.values())
