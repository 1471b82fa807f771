"""Value, list and map state of the key in hand, with the methods of Spark's classes.

Every method finds its cell in `StateCells`, where the operator puts the cells of one key after the other. So the
objects that a processor keeps from `init` serve all keys.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from pyspark.sql.streaming.stateful_processor import ListState, MapState, ValueState

from elastic.errors import InvalidStateCall
from elastic.spark.processors.values import Codec, Stored, make_row
from elastic.spark.processors.variables import Cell, Kind, Variable


class StateCells:
    """The cells of the key in hand, by place; None between two keys."""

    def __init__(self) -> None:
        self.cells: list[Cell | None] | None = None
        self.is_changed = False
        self.now_ms = 0  # the processing time of the batch
        self.where = "init"  # what the processor does without a key, for errors

    def of(self, variable: Variable) -> list[Cell | None]:
        """Return the cells; raises if there is no key."""
        if self.cells is None:
            raise InvalidStateCall(variable.name, f"there is no grouping key in {self.where}()")
        return self.cells


class _DeletedCells(StateCells):
    def of(self, variable: Variable) -> list[Cell | None]:
        raise InvalidStateCall(variable.name, "init() deleted it with deleteIfExists()")


class _State:
    def __init__(self, cells: StateCells, variable: Variable) -> None:
        self._cells = cells
        self._variable = variable
        self._place = variable.place
        self._codec = variable.codec
        self._load = variable.codec.load
        self._is_plain = self._load is None and variable.ttl_ms is None  # a cell holds what the processor sees

    def mark_deleted(self) -> None:
        """Fail from now on."""
        self._cells = _DeletedCells()

    def clear(self) -> None:
        cells = self._cells.of(self._variable)
        if cells[self._place] is not None:
            cells[self._place] = None
            self._cells.is_changed = True

    def replace(self, value: Any) -> None:
        """Let the state hold a value as a test writes it; None clears it."""
        self.clear()
        if value is not None:
            self._write(value)

    def _write(self, value: Any) -> None:
        raise NotImplementedError

    def _loaded(self, stored: Stored) -> Any:
        return stored if self._load is None else self._load(stored)

    def _pack(self, stored: Stored) -> Any:
        """Return what a cell holds for a stored tuple: the tuple, or with a time to live its expiry and the tuple."""
        ttl_ms = self._variable.ttl_ms
        return stored if ttl_ms is None else (self._cells.now_ms + ttl_ms, stored)

    def _is_expired(self, held: Any) -> bool:
        return self._variable.ttl_ms is not None and held[0] <= self._cells.now_ms

    def _items(self) -> list[tuple[Any, Stored]]:
        """Return what the cell holds now; later changes do not affect the list."""
        cell = self._cells.of(self._variable)[self._place]
        return [] if cell is None else list(self._variable.items(cell, self._cells.now_ms))


class KeyValueState(_State, ValueState):
    """`ValueState`: a tuple, or nothing."""

    def exists(self) -> bool:
        return self.get() is not None

    def get(self) -> Any:
        cells = self._cells.cells
        if cells is None:
            cells = self._cells.of(self._variable)
        held = cells[self._place]
        if held is None or self._is_plain:
            return held
        if self._variable.ttl_ms is not None:
            expiry_ms, held = held
            if expiry_ms <= self._cells.now_ms:
                return None
        return held if self._load is None else self._load(held)

    def update(self, newValue: Any) -> None:  # noqa: N803 - Spark's name
        cells = self._cells.cells
        if cells is None:
            cells = self._cells.of(self._variable)
        stored = self._codec.store(newValue)
        cells[self._place] = stored if self._is_plain else self._pack(stored)
        self._cells.is_changed = True

    def _write(self, value: Any) -> None:
        self.update(value)


class KeyListState(_State, ListState):
    """`ListState`: tuples in the order in which they were appended. With a time to live each expires on its own."""

    def exists(self) -> bool:
        cell = self._cells.of(self._variable)[self._place]
        return cell is not None and not self._is_expired(cell[-1])  # the last one expires last

    def get(self) -> Iterator[Any]:
        return iter([self._loaded(stored) for _, stored in self._items()])

    def put(self, newState: Any) -> None:  # noqa: N803 - Spark's name
        held = self._pack_list(newState)
        self._cells.of(self._variable)[self._place] = held
        self._cells.is_changed = True

    def appendValue(self, newState: Any) -> None:  # noqa: N802, N803 - Spark's name
        self._append([self._pack(self._codec.store(newState))])

    def appendList(self, newState: Any) -> None:  # noqa: N802, N803 - Spark's name
        self._append(self._pack_list(newState))

    def _write(self, value: Any) -> None:
        self.put(value)

    def _pack_list(self, values: Any) -> list[Any]:
        held = [self._pack(self._codec.store(value)) for value in values]
        if not held:
            raise InvalidStateCall(self._variable.name, "an empty list cannot be written; use clear()")
        return held

    def _append(self, held: list[Any]) -> None:
        cells = self._cells.of(self._variable)
        cell = cells[self._place]
        if cell is None or self._is_expired(cell[-1]):
            cells[self._place] = held
        else:
            if self._is_expired(cell[0]):
                del cell[: next(at for at, entry in enumerate(cell) if not self._is_expired(entry))]
            cell.extend(held)
        self._cells.is_changed = True


class KeyMapState(_State, MapState):
    """`MapState`: tuples by tuples, in the order of their first update; by their last one with a time to live."""

    def __init__(self, cells: StateCells, variable: Variable) -> None:
        super().__init__(cells, variable)
        self._keys: Codec = variable.keys  # type: ignore[assignment] # a map has them
        self._names = variable.codec.schema.names

    def exists(self) -> bool:
        cell = self._cells.of(self._variable)[self._place]
        return cell is not None and not self._is_expired(cell[next(reversed(cell))])  # the last one expires last

    def getValue(self, key: Any) -> Any:  # noqa: N802 - Spark's name
        """Return the value of a user key as a `Row`: the one call that returns one in Spark too."""
        held = self._find(key)
        if held is None:
            return None
        return make_row(self._names, self._loaded(held if self._variable.ttl_ms is None else held[1]))

    def containsKey(self, key: Any) -> bool:  # noqa: N802 - Spark's name
        return self._find(key) is not None

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802 - Spark's name
        name, held = self._keys.store(key), self._pack(self._codec.store(value))
        cells = self._cells.of(self._variable)
        cell = cells[self._place]
        if cell is None:
            cell = cells[self._place] = {}
        if self._variable.ttl_ms is not None:
            cell.pop(name, None)  # the order is that of the expiries
            while cell and self._is_expired(cell[first := next(iter(cell))]):
                del cell[first]
        cell[name] = held
        self._cells.is_changed = True

    def iterator(self) -> Iterator[Any]:
        return iter([(self._load_key(key), self._loaded(stored)) for key, stored in self._items()])

    def keys(self) -> Iterator[Any]:
        return iter([self._load_key(key) for key, _ in self._items()])

    def values(self) -> Iterator[Any]:
        return iter([self._loaded(stored) for _, stored in self._items()])

    def removeKey(self, key: Any) -> None:  # noqa: N802 - Spark's name
        name = self._keys.store(key)
        cells = self._cells.of(self._variable)
        cell = cells[self._place]
        if cell is not None and name in cell:
            del cell[name]
            if not cell:
                cells[self._place] = None
            self._cells.is_changed = True

    def _write(self, value: Any) -> None:
        for key, entry in value.items():
            self.updateValue(key, entry)

    def _find(self, key: Any) -> Any:
        """Return what the cell holds for a user key; None if nothing, or if it has expired."""
        name = self._keys.store(key)
        cell = self._cells.of(self._variable)[self._place]
        held = None if cell is None else cell.get(name)
        return None if held is None or self._is_expired(held) else held

    def _load_key(self, stored: Stored) -> Any:
        return stored if self._keys.load is None else self._keys.load(stored)


KeyState: TypeAlias = KeyValueState | KeyListState | KeyMapState
STATES: dict[Kind, type[KeyState]] = {"value": KeyValueState, "list": KeyListState, "map": KeyMapState}
