"""Build the records of keys, and remember the record of every key."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from migration.keys.compact.discretise import DEFAULT_R, discretise
from migration.keys.compact.records import KeyRecords
from migration.keys.loads import Floats, KeyLoads, Nodes


@dataclass(frozen=True, eq=False)
class GroupedKeys:
    """Keys with their records: the key in row i belongs to record `record_of[i]`.

    A node keeps this between its report and the plan, so that it can tell which keys a record stands for.
    """

    loads: KeyLoads
    records: KeyRecords
    record_of: NDArray[np.int32]


def group_keys(
    loads: KeyLoads,
    r: int | None = DEFAULT_R,
    *,
    use_means: bool = True,
    work_unit: float | None = None,
    size_unit: float | None = None,
) -> GroupedKeys:
    """Discretise work and sizes with R = 2^r, or keep them as they are if r is None, and count keys by kind.

    Deviations cancel out within the keys of each node. The work and the size of a record are the means of its keys; or,
    as in the paper, the representative values if `use_means` is False. Strategies take keys with much work for their
    size, and so those whose work was rounded up and whose size was rounded down: with representative values, the loads
    of a plan are off by several per cent; with means they are not.

    Units default to the smallest positive values; give them where several nodes should use the same representative
    values. O(K log K).
    """
    work = loads.work if r is None else discretise(loads.work, r, work_unit, loads.current)
    size = loads.size if r is None else discretise(loads.size, r, size_unit, loads.current)
    first, kind_of, count = _count_kinds(loads, work, size)
    current, home, work, size = loads.current[first], loads.home[first], work[first], size[first]
    if r is not None and use_means:
        work = np.bincount(kind_of, loads.work) / count
        size = np.bincount(kind_of, loads.size) / count
    records = KeyRecords(current, current, home, work, size, count)
    record_of_kind = _rank_kinds(current, home, work, size)
    return GroupedKeys(loads, records, record_of_kind[kind_of])


def group_keys_by_definition(loads: KeyLoads, work: Floats, size: Floats) -> dict[tuple[int, int, float, float], int]:
    """The number of keys of every kind (current, home, work, size)."""
    counts: dict[tuple[int, int, float, float], int] = {}
    for kind in zip(loads.current.tolist(), loads.home.tolist(), work.tolist(), size.tolist(), strict=True):
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _count_kinds(
    loads: KeyLoads, work: Floats, size: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct kinds in the order of records: a row of each, the kind of every row, and counts."""
    nodes = int(max(loads.current.max(), loads.home.max())) + 1
    code = loads.current.astype(np.int64) * nodes + loads.home
    for column in (work, size):
        _, ranks = np.unique(column, return_inverse=True)
        width = int(ranks.max()) + 1
        if int(code.max()) >= (2**62) // width:
            _, code = np.unique(code, return_inverse=True)
        code = code * width + ranks
    _, first, kind_of, count = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    return first, kind_of, count


def _rank_kinds(current: Nodes, home: Nodes, work: Floats, size: Floats) -> NDArray[np.int32]:
    """The record of every kind: kinds with the same means share one."""
    order = np.lexsort((size, work, home, current))
    is_first = np.zeros(len(order), np.bool_)
    for column in (current, home, work, size):
        ordered = column[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.cumsum(is_first)
    return ranks
