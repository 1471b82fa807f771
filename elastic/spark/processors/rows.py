"""The row form: Arrow to `Row` objects in bulk, and the rows that a processor emits back to tuples."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from types import GeneratorType
from typing import Any

import pyarrow as pa
from pyspark.sql.types import Row, StructType

from elastic.errors import InvalidOutput
from elastic.operators.outputs import RowList
from elastic.spark.processors.schemas import is_nested


def to_rows(table: pa.Table) -> list[Row]:
    """Return the rows of a table as Spark gives them to a processor."""
    create = partial(tuple.__new__, _row_type(tuple(table.column_names)))  # around the slow constructor of Row
    return list(map(create, zip(*[column.to_pylist() for column in table.columns], strict=True)))


@lru_cache(maxsize=1_000)
def _row_type(names: tuple[str, ...]) -> type[Row]:
    """Return the type of the rows of a table: `Row`, with the names once for all of them."""
    return type(Row.__name__, (Row,), {"__fields__": Row(*names), "__module__": Row.__module__})


class RowForm:
    """`transformWithState`: a processor gets an iterator of rows and emits rows, matched to the schema by name."""

    def __init__(self, output: StructType, operator: str) -> None:
        self._names = output.names
        self._is_nested = is_nested(output)
        self._operator = operator

    def to_input(self, table: pa.Table) -> list[Row]:
        return to_rows(table)

    def measure(self, rows: pa.Table) -> None:
        """Do nothing: rows come one by one, so their size does not matter."""

    def chunks(self, rows: list[Row]) -> Iterator[Row]:
        """Return what handlers get for the rows of a key, one by one."""
        return iter(rows)

    def to_output(self, emitted: Any) -> list[tuple[Any, ...]]:
        """Return what a processor emits for a key as tuples in the order of the schema. Runs the processor's generator.

        Columns that a row lacks are null and others are ignored, as in Spark.
        """
        out: list[tuple[Any, ...]] = RowList()
        names = self._names
        for row in _iterate(emitted, self._operator):
            fields = getattr(row, "__fields__", None)
            if fields == names and type(row) is Row and not self._is_nested:
                out.append(row)
                continue
            if fields is None or not isinstance(row, Row):
                raise InvalidOutput(
                    self._operator, f"it emits a {type(row).__name__}, {row!r}, instead of a Row with named columns"
                )
            if self._is_nested:
                values = row.asDict(True)
                out.append(tuple(map(values.get, self._names)))
            else:
                out.append(self._reorder(row, fields))
        return out

    def _reorder(self, row: Row, fields: Sequence[str]) -> tuple[Any, ...]:
        if tuple(fields) == tuple(self._names):
            return row
        return tuple(map(dict(zip(fields, row, strict=True)).get, self._names))


def _iterate(emitted: Any, operator: str) -> Iterable[Any]:
    if type(emitted) is not GeneratorType and not isinstance(emitted, Iterable):
        raise InvalidOutput(operator, f"a handler returned a {type(emitted).__name__} instead of an iterator of rows")
    return emitted
