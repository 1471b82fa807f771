"""The handle that a processor gets in `init`: it declares variables there, and sets timers of the key in hand later."""

from bisect import insort
from collections.abc import Iterator
from operator import index
from typing import Any

from pyspark.sql.streaming.stateful_processor import ListState, MapState, StatefulProcessorHandle, ValueState
from pyspark.sql.types import StructType

from elastic.errors import InvalidProcessor, InvalidStateCall
from elastic.operators.timers import TimerKind
from elastic.spark.processors.schemas import to_struct
from elastic.spark.processors.states import STATES, KeyState, StateCells
from elastic.spark.processors.variables import TIMERS, Cell, Entry, Kind, Variable, parse_name

_TIMERS_PLACE = 0
_ONE_VARIABLE = 2  # the number of cells of a processor with one variable: that of the timers comes first
_ONE_PAIR = 2  # the length of what a key holds of one variable: tag and cell
_RESERVED_STARTS = ("_", "$")
_RESERVED_NAME = "default"


class ProcessorHandle(StatefulProcessorHandle):
    """Spark's handle over the state of the engine: one for all keys of a stage on a node.

    The operator calls `enter` with what a key holds, then the processor, then `leave`, and clears `state.cells`. In
    between, the states and timers that the processor sees are those of the key.
    """

    def __init__(self, processor: str, timer_kind: TimerKind | None) -> None:
        self.variables: dict[str, Variable] = {}
        self.timers_changed = False
        self._processor = processor
        self._timer_kind = timer_kind
        self.state = StateCells()
        self._states: dict[str, KeyState] = {}
        self._deleted: set[str] = set()
        self._places = {TIMERS: _TIMERS_PLACE}
        self._tags = [TIMERS]
        self._expiring: list[Variable] = []  # those with a time to live
        self._others: list[Any] = []  # tags and cells of the key in hand that no variable stands for
        self._in_init = True

    # --- for the operator ---

    def end_init(self) -> None:
        """Take no more declarations."""
        self._in_init = False
        self.state.where = "close"
        self._expiring = [variable for variable in self.variables.values() if variable.ttl_ms is not None]

    def enter(self, entry: Entry | None, now_ms: int) -> None:
        """Take a key in hand, with what it holds."""
        if self._others:
            self._others = []
        state = self.state
        state.now_ms = now_ms
        state.is_changed = self.timers_changed = False
        state.cells = cells = [None] * len(self._tags)
        if entry is None:
            return
        places = self._places
        if len(entry) == _ONE_PAIR and (place := places.get(entry[0])) is not None:
            cells[place] = entry[1]
            return
        pairs = iter(entry)
        for tag, cell in zip(pairs, pairs, strict=True):
            place = places.get(tag)
            if place is None:
                self._adopt(tag, cell, cells)
            else:
                cells[place] = cell

    def leave(self) -> Entry:
        """Return what the key holds now; empty if nothing."""
        cells = self._current()
        if len(cells) == _ONE_VARIABLE and cells[_TIMERS_PLACE] is None and not self._others:
            return () if cells[1] is None else (self._tags[1], cells[1])
        held: list[Any] = []
        for tag, cell in zip(self._tags, cells, strict=True):
            if cell is not None:
                held += (tag, cell)
        return (*held, *self._others)

    def purge(self) -> None:
        """Remove what has expired of the key in hand."""
        cells = self._current()
        for variable in self._expiring:
            cell = cells[variable.place]
            if cell is not None:
                cells[variable.place] = variable.purge(cell, self.state.now_ms)
        self.state.is_changed = True

    def next_purge_ms(self) -> int | None:
        """Return when the first variable of the key in hand has expired as a whole; None without a time to live."""
        cells = self._current()
        held = [(variable, cells[variable.place]) for variable in self._expiring]
        return min((variable.last_expiry_ms(cell) for variable, cell in held if cell is not None), default=None)

    def state_of(self, name: str) -> KeyState:
        """Return the state of a name; raises `InvalidStateCall` if it is not declared."""
        if name not in self._states:
            raise InvalidStateCall(name, f"{self._processor} declares only {', '.join(map(repr, self._states))}")
        return self._states[name]

    @property
    def expires(self) -> bool:
        """Whether a variable has a time to live."""
        return bool(self._expiring)

    @property
    def timers(self) -> tuple[int, ...]:
        """The expiries of the timers of the key in hand, ascending."""
        return self._current()[_TIMERS_PLACE] or ()

    # --- for the processor ---

    def getValueState(  # noqa: N802 - Spark's name
        self,
        stateName: str,  # noqa: N803 - Spark's name
        schema: StructType | str,
        ttlDurationMs: int | None = None,  # noqa: N803 - Spark's name
    ) -> ValueState:
        state: ValueState = self._declare("value", stateName, schema, ttlDurationMs)
        return state

    def getListState(  # noqa: N802 - Spark's name
        self,
        stateName: str,  # noqa: N803 - Spark's name
        schema: StructType | str,
        ttlDurationMs: int | None = None,  # noqa: N803 - Spark's name
    ) -> ListState:
        state: ListState = self._declare("list", stateName, schema, ttlDurationMs)
        return state

    def getMapState(  # noqa: N802 - Spark's name
        self,
        stateName: str,  # noqa: N803 - Spark's name
        userKeySchema: StructType | str,  # noqa: N803 - Spark's name
        valueSchema: StructType | str,  # noqa: N803 - Spark's name
        ttlDurationMs: int | None = None,  # noqa: N803 - Spark's name
    ) -> MapState:
        state: MapState = self._declare("map", stateName, valueSchema, ttlDurationMs, userKeySchema)
        return state

    def deleteIfExists(self, stateName: str) -> None:  # noqa: N802, N803 - Spark's name
        """Drop a variable: one declared before in this `init`, or what an earlier version of the processor stored."""
        if not self._in_init:
            raise InvalidStateCall(stateName, "deleteIfExists() can be called in init() only")
        self._deleted.add(stateName)
        variable = self.variables.pop(stateName, None)
        if variable is not None:
            del self._places[variable.tag]
            self._states.pop(stateName).mark_deleted()

    def registerTimer(self, expiryTimestampMs: int) -> None:  # noqa: N802, N803 - Spark's name
        timers = self._timers_for("registerTimer")
        expiry_ms = self._to_milliseconds(expiryTimestampMs)
        if expiry_ms not in timers:
            changed = list(timers)
            insort(changed, expiry_ms)
            self._set_timers(changed)

    def deleteTimer(self, expiryTimestampMs: int) -> None:  # noqa: N802, N803 - Spark's name
        timers = self._timers_for("deleteTimer")
        expiry_ms = self._to_milliseconds(expiryTimestampMs)
        if expiry_ms in timers:
            self._set_timers([other for other in timers if other != expiry_ms])

    def listTimers(self) -> Iterator[int]:  # noqa: N802 - Spark's name
        return iter(self._timers_for("listTimers"))

    # --- internal ---

    def _declare(
        self,
        kind: Kind,
        name: str,
        schema: StructType | str,
        ttl_ms: int | None,
        keys: StructType | str | None = None,
    ) -> Any:
        if not self._in_init:
            raise InvalidStateCall(name, "a variable can be declared in init() only")
        self._check_name(name)
        what = f"state {name!r} of {self._processor}"
        key_schema = None if keys is None else to_struct(keys, f"the keys of {what}")
        ttl_ms = self._check_ttl(name, ttl_ms)
        variable = Variable(kind, name, to_struct(schema, what), ttl_ms, len(self._tags), key_schema)
        self.variables[name] = variable
        self._places[variable.tag] = variable.place
        self._tags.append(variable.tag)
        self._states[name] = STATES[kind](self.state, variable)
        return self._states[name]

    def _check_name(self, name: str) -> None:
        why = None
        if not isinstance(name, str) or not name or name != name.strip() or name == _RESERVED_NAME:
            why = f'cannot be empty, begin or end with a space, or be "{_RESERVED_NAME}"'
        elif name.startswith(_RESERVED_STARTS):
            why = f"cannot begin with {' or '.join(_RESERVED_STARTS)}"
        if why is not None:
            raise InvalidProcessor(self._processor, f"the name of a state {why}, got {name!r}. Choose another name")
        if name in self.variables:
            raise InvalidProcessor(self._processor, f"state {name!r} is declared twice. Give each state its own name")

    def _check_ttl(self, name: str, ttl_ms: int | None) -> int | None:
        if ttl_ms is None or ttl_ms == 0:  # Spark takes 0 for none
            return None
        if self._timer_kind != "processing":
            raise InvalidProcessor(
                self._processor, f'state {name!r} has a time to live. Set time_mode="ProcessingTime", which it needs'
            )
        try:
            milliseconds = index(ttl_ms)
        except TypeError:
            given = f"{type(ttl_ms).__name__} {ttl_ms!r}"
            why = f"the time to live of state {name!r} is a number of milliseconds, got {given}. Give an integer"
            raise InvalidProcessor(self._processor, why) from None
        if milliseconds < 0:
            raise InvalidProcessor(
                self._processor, f"the time to live of state {name!r} is {milliseconds} ms. Give a positive one"
            )
        return milliseconds

    def _adopt(self, tag: str, cell: Cell, cells: list[Cell | None]) -> None:
        """Take a cell that was written under a declaration which the processor does not make now."""
        name = parse_name(tag)
        if name in self._deleted:
            return  # what is declared again under this name begins empty
        variable = self.variables.get(name)
        if variable is not None:
            cells[variable.place] = variable.upgrade(tag, cell)
        else:
            self._others += (tag, cell)

    def _current(self) -> list[Any]:
        if self.state.cells is None:
            raise InvalidStateCall(TIMERS, f"there is no grouping key in {self.state.where}()")
        return self.state.cells

    def _timers_for(self, call: str) -> tuple[int, ...]:
        if self._timer_kind is None:
            raise InvalidStateCall(
                call, 'there are no timers with time_mode="None"; use "ProcessingTime" or "EventTime" instead'
            )
        return self._current()[_TIMERS_PLACE] or ()

    def _set_timers(self, timers: list[int]) -> None:
        self._current()[_TIMERS_PLACE] = tuple(timers) or None
        self.timers_changed = self.state.is_changed = True

    def _to_milliseconds(self, expiry_ms: Any) -> int:
        try:
            return index(expiry_ms)
        except TypeError:
            raise InvalidStateCall(
                "timer", f"an expiry is a number of milliseconds, got {type(expiry_ms).__name__} {expiry_ms!r}"
            ) from None
