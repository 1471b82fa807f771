"""The base class of operators, over batches of rows."""

import copy
from collections.abc import Collection
from itertools import compress
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastic.errors import InvalidJob
from elastic.operators.columns import KeyedColumns
from elastic.operators.context import Context
from elastic.operators.keys import to_arrow_keys
from elastic.operators.representation import describe_operator
from elastic.operators.schemas import SchemaLike
from elastic.operators.state_queries import look_up, to_state_rows
from elastic.operators.state_size import estimate_bytes
from elastic.operators.timers import Timer
from elastic.routing.hashing import hash_keys, is_among

Hashes: TypeAlias = NDArray[np.int64]
# Rows, or an iterable of rows (most often a generator), or None; rows may be wrapped in ToSink, ToNext or ToSelf.
Yields: TypeAlias = Any


class State:
    """The state of one task: read and assign `value`. The engine saves, moves and restores it."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Operator:
    """A function over the rows of a task, with a state.

    The engine passes the rows of one task and one batch at a time. The same rows in the same batch must give the same
    state and output: take time and random numbers from the context, and keep nothing mutable on `self`. Yield rows as
    an Arrow table or record batch, a pandas DataFrame, a list of dicts or tuples, or a single dict or tuple; they go to
    the next stage if there is one, else to the sink. `ToSink`, `ToNext` and `ToSelf` override that.
    """

    input_format: ClassVar[str] = "arrow"  # "arrow", "pandas", or "rows" for a list of dicts
    output_schema: SchemaLike | None = None  # of the rows for the sink; None if there are none
    next_schema: SchemaLike | None = None  # of the rows for the next stage, if it differs from output_schema
    # Further destinations: "next" and "self". Declared, since without them a batch ends after one round.
    emits: ClassVar[frozenset[str]] = frozenset()
    stateless: ClassVar[bool] = False
    version: ClassVar[str] = "1"  # a restart refuses state of another version, unless `upgrade` is defined

    # Whether timers without a key are copied, not left behind, when keys move to another unit: for timers at which the
    # operator looks through its whole state, so that one too many does no harm.
    copies_timers: ClassVar[bool] = False

    # How far event times of emitted rows lie behind the watermark at most, once bound: of windows their size and by how
    # much rows may be late. Stages behind this one wait so much longer.
    output_delay_ms: int = 0

    key: tuple[str, ...] = ()  # the key columns, once bound
    input_schema: pa.Schema | None = None  # of the input rows, once bound

    @property
    def handles_timers(self) -> bool:
        """Whether the operator may set timers."""
        return type(self).handle_timer is not Operator.handle_timer

    @property
    def has_timers(self) -> bool:
        """Whether rows may be emitted at a time that the operator has chosen, not only when rows come."""
        return self.handles_timers

    @property
    def can_upgrade(self) -> bool:
        """Whether the operator reads state of an older version; one without state has none to read."""
        return self.stateless or type(self).upgrade is not Operator.upgrade

    @property
    def key_fields(self) -> list[pa.Field]:
        """The key columns with their types; raises `InvalidJob` before the operator is bound."""
        if self.input_schema is None:
            raise InvalidJob("an operator gets its key when it is bound. Run it in a job or in an OperatorTester.")
        return [self.input_schema.field(name) for name in self.key]

    def bind(self, key: tuple[str, ...], input_schema: pa.Schema) -> Self:
        """Return a copy of this operator for rows of this schema; override it to derive `output_schema`.

        Runs on the driver and on every node, possibly more than once: it must not change `self`.
        """
        bound = copy.copy(self)
        bound.key = key
        bound.input_schema = input_schema
        return bound

    def open(self) -> None:
        """Open connections, models or caches; called once per node before any rows."""

    def close(self) -> None:
        """Release resources; called once per node after all rows."""

    def initial_state(self) -> Any:
        """Return the value of a task that has processed nothing."""
        return None

    def upgrade(self, old_version: str, value: Any) -> Any:
        """Return a stored value in the form of this version; `old_version` is any version that the job had before.

        `value` is that of a unit; of one key for a `KeyedOperator`. The engine calls it when it loads a value that an
        older version stored, and again whenever it loads that value again, so the same value must give the same result.
        It may change `value`. Timers stay as they are. It is called without `open` where a snapshot is queried.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define upgrade. Define it.")

    def handle_batch(self, rows: Any, state: State, context: Context) -> Yields:
        """Process the rows of one task, at least one, as `combine` returned them. May yield or return rows."""
        raise NotImplementedError(f"{type(self).__name__} does not define handle_batch. Define it.")

    def combine(self, rows: pa.Table) -> pa.Table:
        """Return fewer rows with the same meaning; senders call it before they log and send rows to this operator.

        `handle_batch` always gets its output, whose columns may differ from the input except for the key. It runs on
        arbitrary parts of a batch, with rows of any tasks, without state and without `open`. Override it if rows of a
        key can be aggregated, or columns dropped. By default rows are unchanged.
        """
        return rows

    def merge(self, partials: pa.Table) -> pa.Table:
        """Return fewer partials with the same meaning: `partials` are rows that `combine` or `merge` returned.

        Define it, besides `combine`, to let `partial` split the rows of a key among tasks. It must not matter which
        partials are merged first, and how many times; the columns stay the same.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define merge. Define it.")

    def part(self, state: State, hashes: Hashes) -> Any:
        """Take the keys with these hashes out of the state; return what the state held of them, for `join`.

        The engine calls it when keys move to another unit, with hashes as `elastic.routing.hash_keys` gives them for
        the key columns; the state may have none of these keys. The part is stored like a value of the state, and the
        timers of these keys move with it. Given for `KeyedColumns` that have the key columns, unless the operator has
        timers; define it together with `join` for any other state. `select_keys` finds the keys.
        """
        if self.stateless:
            return None
        if isinstance(state.value, KeyedColumns):
            return state.value.part(hashes, self.key)
        raise NotImplementedError(f"{type(self).__name__} does not define part. Define it.")

    def join(self, state: State, part: Any) -> None:
        """Put a part of another unit, as `part` returned it, into the state, which has none of its keys."""
        if self.stateless:
            return
        if not isinstance(state.value, KeyedColumns):
            raise NotImplementedError(f"{type(self).__name__} does not define join. Define it.")
        state.value.join(part)

    def select_keys(self, keys: Collection[Any], hashes: Hashes) -> list[Any]:
        """Return those keys that have one of these hashes, in their order.

        A key is the value of the key column, or a tuple of values if there are several. O(keys + hashes).
        """
        types = [field.type for field in self.key_fields]
        return list(compress(keys, is_among(hash_keys(to_arrow_keys(keys, types)), hashes).tolist()))

    def handle_timer(self, timer: Timer, state: State, context: Context) -> Yields:
        """Process a due timer of the operator."""
        raise NotImplementedError(f"{type(self).__name__} sets timers but does not define handle_timer. Define it.")

    def state_size(self, value: Any) -> int:
        """Estimate the bytes of a stored value, for planning; must be cheap."""
        return estimate_bytes(value)

    def state_rows(self, value: Any) -> pa.Table:
        """Return the value as a table, for queries of the state."""
        return to_state_rows(value, self.key, self.input_schema)

    def lookup(self, value: Any, key: tuple[Any, ...]) -> Any:
        """Return what the value holds for one key, given as one entry per key column; None if nothing."""
        return look_up(value, key, self.key)

    def __repr__(self) -> str:
        return describe_operator(self)
