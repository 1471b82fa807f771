"""Groups rows by a small table of hashes: one bucket per row, and a comparison where the bucket has entries.

There are many more buckets than entries, so most rows without an entry meet an empty bucket, and the others seldom
compare with more than one entry. Entries of the same bucket follow each other.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.hashing import to_tasks
from elastic.routing.unit_numbers import UnitNumbers

_BUCKETS_PER_ENTRY = 8
_FEWEST_BUCKETS = 1 << 10
_CHUNK = 1 << 14  # rows at a time, so that what NumPy keeps between two operations stays in the processor's cache

Hashes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableIndex:
    """The entries of a table that has some, by bucket (the low bits of a hash).

    Those of bucket b begin at `starts[b]`, the first entry of its own or, if it has none, of a later bucket.
    `is_followed` says whether the next entry has the same bucket. The last entry is not one: it ends the search.
    """

    hashes: Hashes
    tasks: npt.NDArray[np.int64]
    is_followed: npt.NDArray[np.bool_]
    starts: npt.NDArray[np.int32]

    @classmethod
    def build(cls, hashes: Hashes, tasks: npt.NDArray[np.int32]) -> Self:
        buckets = max(_FEWEST_BUCKETS, 1 << (_BUCKETS_PER_ENTRY * len(hashes)).bit_length())
        bucket_of = hashes & (buckets - 1)
        order = np.argsort(bucket_of, kind="stable")
        starts = np.cumsum(np.bincount(bucket_of + 1, minlength=buckets + 1)).astype(np.int32)
        is_followed = np.diff(bucket_of[order], append=(-1, -2)) == 0
        return cls(np.append(hashes[order], 0), np.append(tasks[order], 0).astype(np.int64), is_followed, starts[:-1])


def group_rows(index: TableIndex, hashes: Hashes, tasks: int, first_task: int, first_guest: int) -> UnitNumbers:
    """Return the number of each row's unit: `first_guest` + task of its entry, or `first_task` + hash mod tasks."""
    kernel = load_compiled("compiled_table_lookup", "group_rows")
    if kernel is None:
        return group_with_numpy(index, hashes, tasks, first_task, first_guest)
    numbers = np.empty(len(hashes), np.int64)
    kernel(
        index.hashes,
        index.tasks,
        index.is_followed,
        index.starts,
        as_read_only(hashes),
        tasks,
        first_task,
        first_guest,
        numbers,
    )
    return numbers


def load() -> None:
    """Load the compiled loop, or compile it into its cache."""
    one = np.zeros(1, np.int64)
    group_rows(TableIndex.build(one, one.astype(np.int32)), one, 1, 0, 1)


def group_with_numpy(index: TableIndex, hashes: Hashes, tasks: int, first_task: int, first_guest: int) -> UnitNumbers:
    """Do the same without a compiler."""
    numbers = np.empty(len(hashes), np.int64)
    for start in range(0, len(hashes), _CHUNK):
        some = hashes[start : start + _CHUNK]
        numbers[start : start + _CHUNK] = to_tasks(some, tasks)
        numbers[start : start + _CHUNK] += first_task
        _place_guests(index, some, first_guest, numbers[start : start + _CHUNK])
    return numbers


def _place_guests(index: TableIndex, hashes: Hashes, first_guest: int, numbers: UnitNumbers) -> None:
    """Compare every row with the first entry of its bucket, and the few that are left with the next ones."""
    at = index.starts.take(hashes & (len(index.starts) - 1))
    is_found = index.hashes.take(at) == hashes
    rows = np.flatnonzero(is_found)
    numbers[rows] = index.tasks.take(at.take(rows)) + first_guest
    rows = np.flatnonzero(index.is_followed.take(at) & ~is_found)
    while len(rows):
        at[rows] += 1
        entries = at[rows]
        is_found = index.hashes[entries] == hashes[rows]
        numbers[rows[is_found]] = index.tasks[entries[is_found]] + first_guest
        rows = rows[~is_found & index.is_followed[entries]]
