"""What a user writes: an operator over batches of rows."""

import copy
from typing import Any, ClassVar, Self, TypeAlias

import pyarrow as pa

from elastic.operators.context import Context
from elastic.operators.queries import looked_up, rows_of_value
from elastic.operators.schemas import SchemaLike
from elastic.operators.sizes import estimated_bytes
from elastic.operators.timers import Timer

# Rows, or an iterable of rows (most often a generator), or None; rows may be wrapped in ToSink, ToNext or ToSelf.
Yields: TypeAlias = Any


class State:
    """The state of one task: `value` is read and assigned. It is saved, moved and restored by the engine."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Operator:
    """A function over the rows of a task, and a state.

    Rows come task by task, a batch at a time. The same rows at the same batch must give the same state and the same
    output: take time and randomness from the context, keep nothing on `self` that changes. Yield rows as an Arrow
    table or record batch, a pandas frame, a list of dicts or tuples, or a single dict or tuple; they go to the next
    stage if there is one, else to the sink. `ToSink`, `ToNext` and `ToSelf` say otherwise.
    """

    input_format: ClassVar[str] = "arrow"  # "arrow", "pandas", or "rows" for a list of dicts
    output_schema: SchemaLike | None = None  # of what goes to the sink; None if nothing does
    next_schema: SchemaLike | None = None  # of what goes to the next stage, if that differs from output_schema
    # What else it may emit: "next" and "self". Declared, since a batch is over after one round if nothing comes back.
    emits: ClassVar[frozenset[str]] = frozenset()
    stateless: ClassVar[bool] = False
    version: ClassVar[str] = "1"  # a state of another version is refused at a restart

    key: tuple[str, ...] = ()  # the key columns, once bound
    input_schema: pa.Schema | None = None  # of the rows that come, once bound

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        """This operator as it will run on such rows; override it to derive `output_schema` from them.

        Called on the driver and on every node, perhaps more than once: it must not change `self`.
        """
        bound = copy.copy(self)
        bound.key = key
        bound.input_schema = input_schema
        return bound

    def open(self) -> None:
        """Called once on a node before any rows: connections, models, caches."""

    def close(self) -> None:
        """Called once on a node after all rows."""

    def initial_state(self) -> Any:
        """The value of a task that has seen nothing yet."""
        return None

    def handle_batch(self, rows: Any, state: State, context: Context) -> Yields:
        """Rows of one task, at least one, as `combine` made them. May yield rows, return them, or give nothing."""
        raise NotImplementedError(f"{type(self).__name__} has no handle_batch. Write one.")

    def combine(self, rows: pa.Table) -> pa.Table:
        """Fewer rows that mean the same, made by whoever sends rows here, before they are logged and travel.

        What it gives is what `handle_batch` gets, always; its columns may be others, but for the key. Called on rows
        of any tasks, without a state and without `open`, on parts of a batch as they come. Override it where rows of a
        key can be added up, or where columns can be left out. By default rows come as they are.
        """
        return rows

    def handle_timer(self, timer: Timer, state: State, context: Context) -> Yields:
        """A timer that the operator set is due."""
        raise NotImplementedError(f"{type(self).__name__} sets timers, but has no handle_timer. Write one.")

    def state_size(self, value: Any) -> int:
        """About how many bytes a value takes when it is stored or moved, for planning; must be cheap."""
        return estimated_bytes(value)

    def state_rows(self, value: Any) -> pa.Table:
        """The value as a table, for those who query the state."""
        return rows_of_value(value, self.key, self.input_schema)

    def lookup(self, value: Any, key: tuple[Any, ...]) -> Any:
        """What the value holds for one key, given as one entry per key column; None if nothing."""
        return looked_up(value, key, self.key)
