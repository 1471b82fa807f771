"""From a plan over records back to keys: which keys of a record move, and where."""

import numpy as np
from numpy.typing import NDArray

from migration.errors import InvalidInput
from migration.keys.compact.grouping import GroupedKeys
from migration.keys.compact.records import Counts, KeyRecords
from migration.keys.loads import Nodes
from migration.optional_compiling import compiled


def materialise(planned: KeyRecords, keys: GroupedKeys) -> Nodes:
    """The node of every key after a plan: of each record as many keys move as the plan says, in the order of rows.

    `planned` may hold records of other nodes too, so that every node can materialise its own share of one plan. Keys of
    a record are alike, so any of them will do. O(K + records).
    """
    moves = planned.moves
    record = _find_records(moves, keys.records)
    is_mine = record >= 0
    record, node, count = record[is_mine], moves.destination[is_mine], moves.count[is_mine]
    # Moves are ordered like records, so the moves of one record are consecutive.
    first = np.searchsorted(record, np.arange(len(keys.records) + 1)).astype(np.int64)
    totals = np.bincount(record, weights=count, minlength=len(keys.records)).astype(np.int64)
    if (totals > keys.records.count).any():
        wrong = int(np.argmax(totals > keys.records.count))
        raise InvalidInput(
            f"the plan moves {totals[wrong]} keys of a record that stands for {keys.records.count[wrong]}. "
            "Materialise a plan with the keys that its records were built from."
        )
    destination = np.array(keys.loads.current)
    _move(keys.record_of, first[:-1].copy(), first[1:], node, count.copy(), destination)
    return destination


def materialise_by_definition(planned: KeyRecords, keys: GroupedKeys) -> list[int]:
    """The same with a queue of destinations for every record."""
    queues: dict[tuple[int, int, float, float], list[int]] = {}
    for current, node, home, work, size, count in zip(*(column.tolist() for column in planned.columns), strict=True):
        if node != current:
            queues.setdefault((current, home, work, size), []).extend([node] * count)
    kinds = [*zip(*(column.tolist() for column in _kind(keys.records)), strict=True)]
    destination: list[int] = keys.loads.current.tolist()
    for row, record in enumerate(keys.record_of.tolist()):
        if queue := queues.get(kinds[record]):
            destination[row] = queue.pop(0)
    return destination


def _kind(records: KeyRecords) -> tuple[NDArray[np.generic], ...]:
    return records.current, records.home, records.work, records.size


def _find_records(moves: KeyRecords, records: KeyRecords) -> NDArray[np.int64]:
    """The record of the same kind for every move, or -1. Both are sorted by kind; O((m + n) log(m + n))."""
    if not len(moves):
        return np.empty(0, np.int64)
    columns = [np.concatenate(pair) for pair in zip(_kind(records), _kind(moves), strict=True)]
    order = np.lexsort(columns[::-1])  # stable: a record comes before the moves of its kind
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = False
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    record = np.empty(len(order), np.int64)
    record[order] = np.where(order[starts] < len(records), order[starts], -1)
    return record[len(records) :]


@compiled
def _move(
    record_of: NDArray[np.int32],
    place: NDArray[np.int64],
    end: NDArray[np.int64],
    node: Nodes,
    count: Counts,
    destination: Nodes,
) -> None:
    for row in range(len(record_of)):
        record = record_of[row]
        move = place[record]
        if move < end[record]:
            destination[row] = node[move]
            count[move] -= 1
            if count[move] == 0:
                place[record] += 1
