"""The row form: Arrow to `Row` objects in bulk, and the rows that a processor emits back to tuples."""

from collections import namedtuple
from collections.abc import Iterable
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
    """Return the type of the rows of a table: `Row`, with the names once for all of them, and so faster to read."""
    places = {name: names.index(name) for name in names}
    get = tuple.__getitem__

    def get_item(row: Row, item: Any) -> Any:
        place = places.get(item) if type(item) is str else item
        return get(row, place) if type(place) is int else Row.__getitem__(row, item)

    # The attributes of a named tuple read any tuple, and are the fastest way to do it. A column that is named as a
    # method of Row is read by its name in brackets only, as in Spark.
    numbered = namedtuple("numbered", [f"c{place}" for place in range(len(names))])  # type: ignore[misc]
    columns = {
        name: vars(numbered)[f"c{place}"]
        for name, place in places.items()
        if not hasattr(Row, name) and not name.startswith("__")
    }
    members = {"__fields__": Row(*names), "__getitem__": get_item, "__module__": Row.__module__}
    return type(Row.__name__, (Row,), {**columns, **members})


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

    chunks = staticmethod(iter)  # what handlers get for the rows of a key: one by one

    def collect(self, emitted: Any, out: list[Any]) -> None:
        """Run the generator of a processor, and add the rows that it emits for a key to others."""
        if type(emitted) is not GeneratorType and not isinstance(emitted, Iterable):
            raise InvalidOutput(
                self._operator, f"a handler returned a {type(emitted).__name__} instead of an iterator of rows"
            )
        # Of nested rows a copy: the processor may change lists in them for the next key.
        out += map(self._to_tuple, emitted) if self._is_nested else emitted

    def to_output(self, collected: list[Any]) -> list[Any]:
        """Return collected rows as tuples in the order of the schema.

        Columns that a row lacks are null and others are ignored, as in Spark.
        """
        if self._is_nested or self._are_in_order(collected):
            return collected
        return RowList(map(self._to_tuple, collected))

    def _are_in_order(self, rows: list[Any]) -> bool:
        """Return whether all rows were created by `Row(name=value, ...)` with the columns of the schema in order."""
        if set(map(type, rows)) - {Row}:
            return False
        names = self._names
        return all(row.__dict__.get("__fields__") == names for row in rows)

    def _to_tuple(self, row: Any) -> tuple[Any, ...]:
        fields = getattr(row, "__fields__", None)
        if fields is None or not isinstance(row, Row):
            raise InvalidOutput(
                self._operator, f"it emits a {type(row).__name__}, {row!r}, instead of a Row with named columns"
            )
        if self._is_nested:
            return tuple(map(row.asDict(True).get, self._names))
        if tuple(fields) == tuple(self._names):
            return row
        return tuple(map(dict(zip(fields, row, strict=True)).get, self._names))
