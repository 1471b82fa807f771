"""The table of single keys: every row finds its entry, and no other row does."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.errors import InvalidJob
from elastic.routing import KeyTable, TableGrouping
from elastic.routing import table_lookup as lookup
from storage.state import UnitId

TASKS = 12
# Hashes of few buckets, so that entries share them; and 0, which ends the search in the index.
HASHES = st.sampled_from(
    [0, 1, -1, 2**63 - 1, -(2**63), *(bucket + (turn << 20) for bucket in (0, 7) for turn in range(9))]
)
ENTRIES = st.dictionaries(HASHES, st.integers(0, TASKS - 1))


def group_one_by_one(entries: dict[int, int], hashes: list[int], stage: int) -> list[int]:
    return [
        (UnitId(stage, entries[key], guests=True) if key in entries else UnitId(stage, key % TASKS)).number
        for key in hashes
    ]


@pytest.fixture(params=["compiled", "numpy"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy":
        monkeypatch.setattr(lookup, "load_compiled", lambda *_: None)


@pytest.mark.usefixtures("_kernel")
def test_rows_are_grouped_as_by_a_dict() -> None:
    @given(ENTRIES, st.lists(HASHES, max_size=50), st.integers(0, 2))
    def check(entries: dict[int, int], hashes: list[int], stage: int) -> None:
        grouping = TableGrouping(KeyTable.from_entries(entries))
        found = grouping.unit_numbers(np.array(hashes, np.int64), stage, TASKS)
        assert found.tolist() == group_one_by_one(entries, hashes, stage)

    check()


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("tasks", [64, 100])
def test_thousands_of_entries_and_many_chunks_of_rows_are_grouped_as_by_a_dict(tasks: int) -> None:
    chance = np.random.default_rng(3)
    keys: npt.NDArray[np.int64] = chance.integers(-(2**63), 2**63 - 1, 20_000)
    entries = {int(key): number % tasks for number, key in enumerate(keys[:3_000])}
    rows = keys[chance.integers(0, len(keys), 50_000)]
    rows.setflags(write=False)  # as the columns of Arrow are
    found = TableGrouping(KeyTable.from_entries(entries)).unit_numbers(rows, 0, tasks)
    expected = [entries[key] + 2**19 if key in entries else key % tasks for key in rows.tolist()]
    assert found.tolist() == expected


@given(ENTRIES)
def test_a_table_has_the_entries_that_it_was_made_of(entries: dict[int, int]) -> None:
    table = KeyTable.from_entries(entries)
    assert dict(table) == entries
    assert len(table) == len(entries)
    assert KeyTable.from_json(table.to_json()) == table
    assert hash(KeyTable.from_json(table.to_json())) == hash(table)


def test_tables_with_other_entries_differ() -> None:
    table = KeyTable.from_entries({1: 2, 3: 4})
    assert table != KeyTable.from_entries({1: 2})
    assert table != KeyTable.from_entries({1: 2, 3: 5})
    assert table != KeyTable.from_entries({1: 2, 4: 4})
    assert table != {1: 2, 3: 4}


def test_a_table_does_not_change_with_the_arrays_that_it_was_made_of() -> None:
    hashes, tasks = np.array([1, 5]), np.array([2, 2], np.int32)
    table = KeyTable(hashes, tasks)
    hashes[0], tasks[0] = 3, 9
    assert dict(table) == {1: 2, 5: 2}
    with pytest.raises(ValueError, match="read-only"):
        table.hashes[0] = 3


@pytest.mark.parametrize(
    ("hashes", "tasks", "reason"),
    [
        ([1, 2], [0], "one task per hash"),
        ([2, 1], [0, 0], "must ascend"),
        ([1, 1], [0, 0], "must ascend"),
        ([1], [-1], "no task -1"),
    ],
)
def test_columns_that_are_no_table_are_refused(hashes: list[int], tasks: list[int], reason: str) -> None:
    with pytest.raises(InvalidJob, match=reason):
        KeyTable(np.array(hashes, np.int64), np.array(tasks, np.int32))
