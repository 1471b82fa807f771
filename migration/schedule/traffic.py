"""Who sends what to whom: the moves as a bipartite multigraph of senders and receivers."""

import math
from collections.abc import Iterable

from migration.errors import InvalidSchedule
from migration.model.moves import Move

Pair = tuple[str, str]  # sender, receiver


def checked(moves: Iterable[Move]) -> tuple[Move, ...]:
    """The moves, refused unless any order of them leads to the same target and all their sizes can be added up."""
    moves = tuple(moves)
    tasks = set()
    for move in moves:
        if move.task in tasks:
            raise InvalidSchedule(f"task {move.task} moves twice. Schedule the moves of one plan at a time.")
        tasks.add(move.task)
        if not move.size >= 0:
            raise InvalidSchedule(f"{move} has no size that could travel. Give sizes that are not negative.")
    if not math.isfinite(sum(move.size for move in moves)):
        raise InvalidSchedule("the sum of all sizes is not finite. Use a larger unit.")
    return moves


def by_pair(moves: Iterable[Move]) -> dict[Pair, list[Move]]:
    """The moves of every pair, pairs in order of appearance, moves in the order given."""
    pairs: dict[Pair, list[Move]] = {}
    for move in moves:
        pairs.setdefault((move.source, move.target), []).append(move)
    return pairs
