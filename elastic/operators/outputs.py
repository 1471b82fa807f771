"""What an operator yields, gathered by where it goes."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import pyarrow as pa

from elastic.errors import InvalidOutput
from elastic.operators.destinations import ToNext, ToSelf, ToSink
from elastic.operators.rows import as_table, is_frame, is_one_row

SINK, NEXT, SELF = "sink", "next", "self"
_DESTINATIONS: dict[type, str] = {ToSink: SINK, ToNext: NEXT, ToSelf: SELF}


class Outputs:
    """Rows on their way out. Single rows are gathered and become one table together, not a table each."""

    def __init__(self, operator: str, schemas: Mapping[str, pa.Schema]) -> None:
        self._operator = operator
        self._schemas = schemas
        self.parts: dict[str, list[Any]] = {}

    def fresh(self) -> Self:
        """An empty one for the same operator."""
        return type(self)(self._operator, self._schemas)

    def take(self, result: Any) -> None:
        """Everything a call yields or returns."""
        for item in _items(result):
            to = _DESTINATIONS.get(type(item))
            if to is None:
                self._add(NEXT if NEXT in self._schemas else SINK, item)
            else:
                self._add(to, item.rows)

    def settle(self) -> None:
        """Make tables of all rows, so that rows that do not fit are found here and not later."""
        for to in self.parts:
            self.parts[to] = [self.table(to)]

    def extend(self, other: Self) -> None:
        """Take over what another one has gathered."""
        for to, parts in other.parts.items():
            self.parts.setdefault(to, []).extend(parts)

    def table(self, to: str) -> pa.Table | None:
        """All rows that go there, in the order they came; None if there are none."""
        parts = self.parts.get(to)
        if not parts:
            return None
        schema = self._schemas[to]
        try:
            # Rows to itself have the input's columns, which the operator did not choose and need not fill.
            tables = [as_table(part, schema, complete=to != SELF) for part in parts]
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InvalidOutput(self._operator, f"rows to {to}: {error}") from error
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        return table if table.num_rows else None

    def _add(self, to: str, rows: Any) -> None:
        if to not in self._schemas:
            raise InvalidOutput(self._operator, f"it yields rows to {to}, which it does not declare")
        parts = self.parts.setdefault(to, [])
        if not is_one_row(rows):
            parts.append(rows)
        elif parts and isinstance(parts[-1], _Gathered) and isinstance(rows, tuple) == isinstance(parts[-1][0], tuple):
            parts[-1].append(rows)
        else:
            parts.append(_Gathered([rows]))


class _Gathered(list[Any]):
    """Rows that came one by one; a user's own list is never added to."""


def _items(result: Any) -> Iterable[Any]:
    if result is None:
        return ()
    single = isinstance(result, pa.Table | pa.RecordBatch | ToSink | ToNext | ToSelf) or is_one_row(result)
    return (result,) if single or is_frame(result) else result
