"""Rows as a processor gets them behave as Spark's, and rows that it emits are what they were when it emitted them."""

import copy
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkAttributeError, PySparkRuntimeError, PySparkValueError
from pyspark.sql import Row

from elastic.spark.processors.rows import to_rows
from tests.elastic.processors.samples import Processor, World, readings

COLUMNS = {"id": "a", "count": 2, "two words": 3, "__x": 4, "at": None}


@pytest.fixture
def row() -> Row:
    return to_rows(pa.table({name: [value] for name, value in COLUMNS.items()}))[0]


def test_columns_are_read_by_name_by_place_and_as_attributes(row: Row) -> None:
    assert (row.id, row.at) == ("a", None)
    assert {name: row[name] for name in COLUMNS} == COLUMNS
    assert (row[0], row[-1], row[True], row[1:3]) == ("a", None, 2, (2, 3))
    assert callable(row.count)  # as in Spark: the method of a tuple
    assert (row.asDict(), "at" in row, "b" in row, len(row)) == (COLUMNS, True, False, 5)


def test_rows_are_rows_of_spark(row: Row) -> None:
    same = Row(**COLUMNS)
    assert isinstance(row, Row)
    assert (row, repr(row), hash(row)) == (same, repr(same), hash(same))
    assert copy.deepcopy(row) == copy.copy(row) == same
    assert type(copy.deepcopy(row)) is Row  # which is how it is pickled too


def test_what_a_row_does_not_have_raises_what_it_raises_in_spark(row: Row) -> None:
    with pytest.raises(PySparkValueError, match="b"):
        row["b"]
    for name in ("b", "__x"):
        with pytest.raises(PySparkAttributeError, match=name):
            getattr(row, name)
    with pytest.raises(PySparkRuntimeError, match="read-only"):
        row.id = "b"
    with pytest.raises(IndexError):
        row[5]


def test_of_two_columns_with_one_name_the_first_is_read() -> None:
    [row] = to_rows(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"]))
    assert (row.n, row["n"], row[1]) == (1, 1, 2)


class Reuses(Processor):
    """Emits the same list for every key, with one element more each time."""

    def init(self, handle: Any) -> None:
        self.seen: list[str] = []

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        self.seen.append(key[0])
        yield Row(id=key[0], seen=self.seen)


def test_a_list_that_is_emitted_may_be_changed_for_the_next_key() -> None:
    run = World("nothing", Reuses(), "id string, seen array<string>", tasks=1)
    assert run.run(readings(("0", 1), ("1", 1))) == [{"id": "0", "seen": ["0"]}, {"id": "1", "seen": ["0", "1"]}]
