"""Phases by size: the shortest schedule for states of different sizes, if they may be sent in parts."""

import math
from collections import deque
from collections.abc import Iterable, Iterator

from migration.model.moves import Move
from migration.schedule.by_count import schedule_by_count
from migration.schedule.decomposition import matchings
from migration.schedule.transfers import Transfer, TransferPhase, check_moves, group_by_pair


def schedule_by_size(moves: Iterable[Move]) -> Iterator[TransferPhase]:
    """Parts of moves, in phases in which no node sends to two nodes or receives from two.

    The preemptive open shop (Gonzalez and Sahni, "Open Shop Scheduling to Minimize Finish Time", JACM 1976): the
    durations add up to the most that any node sends or receives, which no schedule can beat. The moves of a pair keep
    their order; when one is done within a phase, the next one starts. Empty states travel with the others of their
    pair; those of pairs that have no others go first, in phases of no duration.

    Sizes are counted in a power of two so small that whole numbers with a sum below 2**52 are multiples of it, and all
    arithmetic is exact. Other sizes are rounded up, each by less than 2**-51 of the sum of all.
    """
    return _phases(check_moves(moves))


def _phases(moves: tuple[Move, ...]) -> Iterator[TransferPhase]:
    unit = _unit(math.fsum(move.size for move in moves))
    waiting = {pair: _Queue(queue, unit) for pair, queue in group_by_pair(moves).items()}
    traffic = {pair: queue.amount for pair, queue in waiting.items()}
    yield from schedule_by_count(move for move in moves if not traffic[move.source, move.target])
    for _, shares in matchings(traffic):
        yield TransferPhase(tuple(part for pair, share in shares.items() for part in waiting[pair].take(share)))


def _unit(total: float) -> float:
    """The power of two of which `total` holds at most 2**52: sums of multiples of it stay exact floats."""
    _, exponent = math.frexp(total)
    smallest = -1074  # 2**-1074 is the smallest float above zero, and divides all others
    return math.ldexp(1.0, max(exponent - 52, smallest))


class _Queue:
    """The moves of one pair that are not sent yet; `amount` units in all when nothing is sent."""

    def __init__(self, moves: Iterable[Move], unit: float) -> None:
        # Floor division of the negative rounds up, and is exact even where size / unit underflows to zero.
        self._moves = deque((move, int(-(-move.size // unit))) for move in moves)
        self._unit = unit
        self._sent = 0  # units of the first move
        self.amount = sum(units for _, units in self._moves)

    def take(self, share: int) -> Iterator[Transfer]:
        """The next `share` units, and the empty states right behind them."""
        while self._moves:
            move, units = self._moves[0]
            if units and not share:
                return
            start, stop = self._sent, min(self._sent + share, units)
            share -= stop - start
            self._sent = stop
            if stop == units:
                self._moves.popleft()
                self._sent = 0
            yield Transfer(move, start * self._unit, move.size if stop == units else stop * self._unit)
