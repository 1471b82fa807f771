"""The rows that an operator emits, buffered by destination."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import pyarrow as pa

from elastic.errors import InvalidOutput
from elastic.operators.destinations import ToNext, ToSelf, ToSink
from elastic.operators.rows import as_table, is_frame, is_one_row

SINK, NEXT, SELF = "sink", "next", "self"
_NEXT_TO = "next to "
_DESTINATIONS: dict[type, str] = {ToSink: SINK, ToNext: NEXT, ToSelf: SELF}


def next_to(follower: str) -> str:
    """Return the destination that is one of the following stages alone."""
    return f"{_NEXT_TO}{follower}"


class OutputBuffer:
    """Emitted rows by destination. Single rows are collected into one table, not a table each."""

    def __init__(self, operator: str, schemas: Mapping[str, pa.Schema]) -> None:
        self._operator = operator
        self._schemas = schemas
        self.parts: dict[str, list[Any]] = {}

    def new_empty(self) -> Self:
        """Return an empty buffer for the same operator."""
        return type(self)(self._operator, self._schemas)

    def add_all(self, result: Any) -> None:
        """Add everything that a call yields or returns."""
        if type(result) is RowList:
            self._add_tuples(result)
            return
        for item in _items(result):
            to = _DESTINATIONS.get(type(item))
            if to is None:
                self._add(NEXT if NEXT in self._schemas else SINK, item)
            else:
                self._add(next_to(item.to) if to == NEXT and item.to is not None else to, item.rows)

    def settle(self) -> None:
        """Convert all rows to tables, so that invalid rows are detected now and not later."""
        for to in self.parts:
            self.parts[to] = [self.table(to)]

    def extend(self, other: Self) -> None:
        """Add the rows of another buffer."""
        for to, parts in other.parts.items():
            self.parts.setdefault(to, []).extend(parts)

    def table(self, to: str) -> pa.Table | None:
        """Return all rows for a destination, in order; None if there are none."""
        parts = self.parts.get(to)
        if not parts:
            return None
        schema = self._schemas[to]
        try:
            # Rows to itself have the columns of the input, not all of which the operator must fill.
            tables = [as_table(part, schema, complete=to != SELF) for part in parts]
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InvalidOutput(self._operator, f"rows to {to}: {error}") from error
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        return table if table.num_rows else None

    def _add_tuples(self, rows: "RowList") -> None:
        """Add many tuples without a look at each, to where rows go by default."""
        if not rows:
            return
        to = NEXT if NEXT in self._schemas else SINK
        parts = self.parts.get(to)
        if parts and type(parts[-1]) is RowList and isinstance(parts[-1][0], tuple):
            parts[-1].extend(rows)
        else:
            self._add(to, rows[0])
            self.parts[to][-1].extend(rows[1:])

    def _add(self, to: str, rows: Any) -> None:
        if to not in self._schemas:
            followers = [name.removeprefix(_NEXT_TO) for name in self._schemas if name.startswith(_NEXT_TO)]
            if to.startswith(_NEXT_TO) and followers:
                why = f"it emits rows to {to.removeprefix(_NEXT_TO)!r}, but the stages behind it are {followers}"
                raise InvalidOutput(self._operator, why)
            raise InvalidOutput(self._operator, f"it emits rows to {to!r}, which it does not declare")
        parts = self.parts.setdefault(to, [])
        if not is_one_row(rows):
            parts.append(rows)
        elif parts and isinstance(parts[-1], RowList) and isinstance(rows, tuple) == isinstance(parts[-1][0], tuple):
            parts[-1].append(rows)
        else:
            parts.append(RowList([rows]))


class RowList(list[Any]):
    """Rows that were emitted one by one, all dicts or all tuples; not a list that the user emitted.

    An operator of the engine may return one of tuples.
    """


def _items(result: Any) -> Iterable[Any]:
    if result is None:
        return ()
    single = isinstance(result, pa.Table | pa.RecordBatch | ToSink | ToNext | ToSelf) or is_one_row(result)
    return (result,) if single or is_frame(result) else result
