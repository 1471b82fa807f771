"""State variables as a processor declares them, and what each key holds of them.

What a key holds is one tuple of tags and cells in turns: a tag is the text of a declaration, and a cell what the
variable holds. Variables without a value take no room. A tag carries name, kind and schema with the state, so a
processor that restarts with other variables finds its own, and reads values that were written under an older schema.

| kind | cell | cell with a time to live |
| --- | --- | --- |
| value | stored tuple | (expiry, stored tuple) |
| list | list of stored tuples | list of (expiry, stored tuple) |
| map | dict of stored tuples | dict of (expiry, stored tuple) |
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
)

from elastic.errors import InvalidStateCall
from elastic.spark.processors.schemas import from_text, to_text
from elastic.spark.processors.values import Codec, Stored

Kind: TypeAlias = Literal["value", "list", "map"]
Cell: TypeAlias = Any
Entry: TypeAlias = tuple[Any, ...]

TIMERS = "timers"  # the tag of the cell with the expiries of a key's timers, in ascending order
_WIDENING: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
_FIRST_FLOAT = _WIDENING.index(FloatType)


class Variable:
    """One state variable of a processor; `place` is where its cell is among those of a key."""

    def __init__(
        self, kind: Kind, name: str, schema: StructType, ttl_ms: int | None, place: int, keys: StructType | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        self.place = place
        self.ttl_ms = ttl_ms
        self.codec = Codec(schema, name)
        self.keys = None if keys is None else Codec(keys, name, are_keys=True)
        texts = [to_text(schema)] if keys is None else [to_text(schema), to_text(keys)]
        self.tag = json.dumps([kind, name, ttl_ms is not None, *texts])

    def describe(self, cell: Cell, now_ms: int | None = None) -> Any:
        """Return what a cell holds, in the form of rows, for queries; at a time, if one is given."""
        fields = self.codec.schema.names

        def to_fields(stored: Stored) -> dict[str, Any]:
            return dict(zip(fields, self.codec.load(stored) if self.codec.load else stored, strict=True))

        values = [(key, to_fields(stored)) for key, stored in self.items(cell, now_ms)]
        if self.keys is None:
            return [value for _, value in values] if self.kind == "list" else next((value for _, value in values), None)
        load, names = self.keys.load, self.keys.schema.names
        return [
            {"key": dict(zip(names, load(key) if load else key, strict=True)), "value": value} for key, value in values
        ]

    def items(self, cell: Cell, now_ms: int | None = None) -> Iterator[tuple[Any, Stored]]:
        """Yield user key, or None, and stored tuple of everything in a cell that has not expired."""
        if self.kind == "map":
            pairs = list(cell.items())
        else:
            pairs = [(None, held) for held in (cell if self.kind == "list" else [cell])]
        for key, held in pairs:
            if self.ttl_ms is None:
                yield key, held
            elif now_ms is None or held[0] > now_ms:
                yield key, held[1]

    def last_expiry_ms(self, cell: Cell) -> int:
        """Return when everything in a cell has expired. O(1): entries are in the order of their expiry."""
        if self.kind == "value":
            return int(cell[0])
        return int(cell[-1][0] if self.kind == "list" else cell[next(reversed(cell))][0])

    def purge(self, cell: Cell, now_ms: int) -> Cell | None:
        """Return the cell without what has expired; None if nothing is left."""
        if self.kind == "value":
            return cell if cell[0] > now_ms else None
        if self.kind == "list":
            return [held for held in cell if held[0] > now_ms] or None
        return {key: held for key, held in cell.items() if held[0] > now_ms} or None

    def upgrade(self, tag: str, cell: Cell) -> Cell:
        """Return a cell that was written under an older declaration in the form of this one.

        Columns may be added (they are null), removed, reordered and widened, as Spark allows it.
        """
        kind, _, has_ttl, *texts = json.loads(tag)
        if kind != self.kind or has_ttl != (self.ttl_ms is not None):
            raise InvalidStateCall(self.name, f"it is stored as {_describe(kind, has_ttl)} and now declared as another")
        if self.keys is not None and from_text(texts[1]) != self.keys.schema:
            raise InvalidStateCall(self.name, "the keys of a stored map cannot change their schema")
        convert = _find_upgrade(from_text(texts[0]), self.codec.schema, self.name)

        def upgrade_held(held: Any) -> Any:
            return (held[0], convert(held[1])) if has_ttl else convert(held)

        if kind == "value":
            return upgrade_held(cell)
        if kind == "list":
            return [upgrade_held(held) for held in cell]
        return {key: upgrade_held(held) for key, held in cell.items()}


def restore_variable(tag: str) -> Variable:
    """Return the variable that a tag describes; for queries."""
    kind, name, has_ttl, *texts = json.loads(tag)
    schema, *keys = map(from_text, texts)
    return Variable(kind, name, schema, 1 if has_ttl else None, 0, *keys)


def parse_name(tag: str) -> str:
    name: str = json.loads(tag)[1]
    return name


def _describe(kind: str, has_ttl: bool) -> str:
    return f"a {kind} {'with' if has_ttl else 'without'} a time to live"


def _find_upgrade(old: StructType, new: StructType, variable: str) -> Callable[[Stored], Stored]:
    """Return the function from tuples of the old schema to tuples of the new one; columns are matched by name."""
    sources: list[tuple[int | None, Callable[[Any], Any]]] = []
    for field in new:
        if field.name not in old.names:
            if not field.nullable:
                why = f"the new column {field.name!r} must be nullable"
                raise InvalidStateCall(variable, f"{why}, since older values lack it")
            sources.append((None, _keep))
            continue
        place = old.names.index(field.name)
        sources.append((place, _find_widening(old[place].dataType, field.dataType, f"{variable}.{field.name}")))
    return lambda stored: tuple([None if place is None else widen(stored[place]) for place, widen in sources])


def _find_widening(old: DataType, new: DataType, column: str) -> Callable[[Any], Any]:
    if old == new:
        return _keep
    if type(old) in _WIDENING and type(new) in _WIDENING:
        before, after = _WIDENING.index(type(old)), _WIDENING.index(type(new))
        if before < after:
            return _to_float if before < _FIRST_FLOAT <= after else _keep
    raise InvalidStateCall(
        column, f"it is stored as {old.simpleString()} and cannot be read as {new.simpleString()}, only as a wider type"
    )


def _keep(value: Any) -> Any:
    return value


def _to_float(value: Any) -> float | None:
    return None if value is None else float(value)
