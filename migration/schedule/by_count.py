"""Phases by count: for states of similar size, or where a transfer costs a round trip more than its bytes."""

from collections.abc import Iterable, Iterator

from migration.model.moves import Move
from migration.schedule.decomposition import matchings
from migration.schedule.transfers import Transfer, TransferPhase, check_moves, group_by_pair


def schedule_by_count(moves: Iterable[Move]) -> Iterator[TransferPhase]:
    """Whole moves, in phases in which no node sends twice or receives twice.

    An edge colouring of the bipartite multigraph of senders and receivers with as many colours as the busiest node has
    moves in one direction (König), which is the fewest possible. A phase lasts as long as its largest state, so each
    pair sends its larger ones first: large states then share phases.
    """
    return _phases(check_moves(moves))


def _phases(moves: tuple[Move, ...]) -> Iterator[TransferPhase]:
    pairs = group_by_pair(sorted(moves, key=lambda move: -move.size))
    waiting = {pair: map(Transfer.whole, queue) for pair, queue in pairs.items()}
    for weight, shares in matchings({pair: len(queue) for pair, queue in pairs.items()}):
        for step in range(weight):
            yield TransferPhase(tuple(next(waiting[pair]) for pair, share in shares.items() if step < share))
