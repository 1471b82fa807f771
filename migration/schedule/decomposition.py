"""Traffic taken apart into matchings: the one mechanism behind both optimal schedules."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from migration.schedule.traffic import Pair

Ints = NDArray[np.int64]


class Matching(NamedTuple):
    """What travels while nobody changes partners.

    Invariant: every sender and every receiver is in at most one pair, and 0 < shares[pair] <= weight.
    """

    weight: int
    shares: dict[Pair, int]


class _Entries(NamedTuple):
    """The entries of a square matrix that are not zero, row by row; `real` is what is not padding in `amount`."""

    row: Ints
    column: Ints
    amount: Ints
    real: Ints


def matchings(traffic: Mapping[Pair, int]) -> Iterator[Matching]:
    """Take the traffic apart; the weights add up to D, the most that any node sends or receives.

    Birkhoff and von Neumann: in a matrix whose rows and columns all sum to D > 0, some entries that are not zero form
    a perfect matching; take its smallest entry off each of its entries, and rows and columns again have one sum. So
    pad the traffic to such a matrix and peel until nothing is left. Every matching uses an entry up, so there are at
    most |traffic| + 2n - 1. A node that is busy for D has a share in each, so no schedule is shorter.

    Matchings of large entries come first: entries below a threshold wait until the others hold no perfect matching,
    then the threshold halves. This changes no bound, but makes far fewer matchings (Liu et al., "Scheduling Techniques
    for Hybrid Circuit/Packet Networks", CoNEXT 2015).

    Takes whole numbers, D below 2**63. O(E sqrt(n)) a matching, for E entries and n nodes (Hopcroft and Karp).
    """
    senders = list(dict.fromkeys(sender for sender, _ in traffic))
    receivers = list(dict.fromkeys(receiver for _, receiver in traffic))
    entries, left = _padded(traffic, senders, receivers)
    threshold = left
    while left:
        matched = _perfect_matching(entries, threshold)
        if matched is None:
            threshold = (threshold + 1) // 2
            continue
        weight = int(entries.amount[matched].min())
        shares = np.minimum(entries.real[matched], weight)
        entries.amount[matched] -= weight
        entries.real[matched] -= shares
        left -= weight
        sent = zip(entries.row[matched].tolist(), entries.column[matched].tolist(), shares.tolist(), strict=True)
        yield Matching(weight, {(senders[row], receivers[column]): share for row, column, share in sent if share})


def _padded(traffic: Mapping[Pair, int], senders: Sequence[str], receivers: Sequence[str]) -> tuple[_Entries, int]:
    """A square matrix that contains the traffic, with all row and column sums equal to the largest, and that sum."""
    row_of = {sender: row for row, sender in enumerate(senders)}
    column_of = {receiver: column for column, receiver in enumerate(receivers)}
    real = {(row_of[sender], column_of[receiver]): amount for (sender, receiver), amount in traffic.items() if amount}
    order = max(len(senders), len(receivers))
    row_sums, column_sums = [0] * order, [0] * order
    for (row, column), amount in real.items():
        row_sums[row] += amount
        column_sums[column] += amount
    largest = max([*row_sums, *column_sums], default=0)
    padded = dict(real)
    lacks = ([largest - total for total in sums] for sums in (row_sums, column_sums))
    for place, amount in _north_west(*lacks):
        padded[place] = padded.get(place, 0) + amount
    table = [(*place, padded[place], real.get(place, 0)) for place in sorted(padded)]
    return _Entries(*np.array(table, dtype=np.int64).reshape(-1, 4).T.copy()), largest


def _north_west(row_lacks: list[int], column_lacks: list[int]) -> Iterator[tuple[tuple[int, int], int]]:
    """Amounts that use up both lacks, whose sums are equal; each finishes a row or a column, so at most 2n - 1."""
    row = column = 0
    while row < len(row_lacks) and column < len(column_lacks):
        amount = min(row_lacks[row], column_lacks[column])
        if amount:
            yield (row, column), amount
        row_lacks[row] -= amount
        column_lacks[column] -= amount
        if row_lacks[row]:
            column += 1
        else:
            row += 1


def _perfect_matching(entries: _Entries, threshold: int) -> NDArray[np.intp] | None:
    """Where `entries` holds one amount of at least `threshold` for every row and column; None if it nowhere does."""
    # Imported late, because planning does without and starts faster.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    allowed = np.flatnonzero(entries.amount >= threshold)
    rows, columns = entries.row[allowed], entries.column[allowed]
    order = int(entries.row[-1]) + 1  # no row of a padded matrix is empty
    starts = np.searchsorted(rows, np.arange(order + 1))
    graph = csr_array((np.ones(len(rows)), columns, starts), shape=(order, order))
    column_of = maximum_bipartite_matching(graph, perm_type="column")
    matched = allowed[np.equal(column_of[rows], columns)]
    return matched if len(matched) == order else None
