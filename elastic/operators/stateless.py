"""Operators without state: filters, mappings, enrichment."""

from collections.abc import Callable
from typing import Any, ClassVar

from elastic.operators.context import Context
from elastic.operators.operator import Operator, State, Yields
from elastic.operators.schemas import SchemaLike


class StatelessOperator(Operator):
    """A function over rows, without state and timers."""

    stateless: ClassVar[bool] = True

    def handle_rows(self, rows: Any, context: Context) -> Yields:
        """Process the rows of one task, at least one."""
        raise NotImplementedError(f"{type(self).__name__} does not define handle_rows. Define it.")

    def handle_batch(self, rows: Any, _state: State, context: Context) -> Yields:
        return self.handle_rows(rows, context)


class _Function(StatelessOperator):
    """A plain function as an operator."""

    def __init__(self, function: Callable[[Any], Any], output_schema: SchemaLike, input_format: str) -> None:
        self._function = function
        self.output_schema = output_schema
        self.input_format = input_format  # type: ignore[misc]

    @property
    def name(self) -> str:
        return getattr(self._function, "__name__", "function")

    def handle_rows(self, rows: Any, _context: Context) -> Yields:
        return self._function(rows)

    def __repr__(self) -> str:
        return f"stateless({self.name})"


def stateless(
    function: Callable[[Any], Any], output_schema: SchemaLike, *, input_format: str = "arrow"
) -> StatelessOperator:
    """Return an operator for a function from rows to rows, or to an iterator of rows."""
    return _Function(function, output_schema, input_format)
