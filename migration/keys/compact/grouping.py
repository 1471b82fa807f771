"""Build the records of keys, and remember the record of every key."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from migration.keys.compact.discretise import DEFAULT_R, discretise
from migration.keys.compact.records import KeyRecords
from migration.keys.loads import Floats, KeyLoads


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
    work_unit: float | None = None,
    size_unit: float | None = None,
) -> GroupedKeys:
    """Discretise work and sizes with R = 2^r, or keep them as they are if r is None, and count keys by kind.

    Deviations cancel out within the keys of each node. Units default to the smallest positive values; give them where
    several nodes should use the same representative values. O(K log K).
    """
    work = loads.work if r is None else discretise(loads.work, r, work_unit, loads.current)
    size = loads.size if r is None else discretise(loads.size, r, size_unit, loads.current)
    first, record_of, count = _count_kinds(loads, work, size)
    records = KeyRecords(loads.current[first], loads.current[first], loads.home[first], work[first], size[first], count)
    return GroupedKeys(loads, records, record_of.astype(np.int32))


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
