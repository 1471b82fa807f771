"""Schemas in Spark's DDL, such as "word string, count long", or as Arrow schemas."""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

import pyarrow as pa

from elastic.errors import InvalidJob

SchemaLike: TypeAlias = str | pa.Schema | pa.DataType

_Item = TypeVar("_Item")

_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])")


def to_schema(declared: SchemaLike) -> pa.Schema:
    """Return the Arrow schema; a type alone is one column named `key`. Raises `InvalidJob` for invalid DDL."""
    if isinstance(declared, pa.Schema):
        return declared
    if isinstance(declared, pa.DataType):
        return pa.schema([("key", declared)])
    return _Parser(declared).schema()


class _Parser:
    """Recursive descent over: name [:] type [not null], ... with array<>, map<,>, struct<> and decimal(,) nested."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = next(self._tokens, "")

    def schema(self) -> pa.Schema:
        fields = self._many(self._field)
        if self._next:
            raise self._error(f"unexpected {self._next!r}")
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise self._error("duplicate column")
        return pa.schema(fields)

    def _field(self) -> pa.Field:
        name = self._take()
        if self._next == ":":
            self._take()
        kind = self._type()
        nullable = True
        if self._next.lower() == "not":
            self._take()
            self._expect("null")
            nullable = False
        return pa.field(_unquote(name), kind, nullable)

    def _type(self) -> pa.DataType:
        name = self._take().lower()
        if name in _TYPES:
            return _TYPES[name]
        if name in ("decimal", "dec", "numeric"):
            return pa.decimal128(*(self._between("(", self._number, ")") if self._next == "(" else (10, 0)))
        if name in ("varchar", "char"):
            self._between("(", self._number, ")")
            return pa.string()
        if name == "array":
            return pa.list_(*self._between("<", self._type, ">"))
        if name == "map":
            return pa.map_(*self._between("<", self._type, ">"))
        if name == "struct":
            return pa.struct(self._between("<", self._field, ">"))
        raise self._error(f"unknown type {name!r}")

    def _between(self, opening: str, item: Callable[[], _Item], closing: str) -> list[_Item]:
        self._expect(opening)
        items = self._many(item)
        self._expect(closing)
        return items

    def _many(self, item: Callable[[], _Item]) -> list[_Item]:
        items = [item()]
        while self._next == ",":
            self._take()
            items.append(item())
        return items

    def _number(self) -> int:
        text = self._take()
        if not text.isdigit():
            raise self._error(f"expected a number, got {text!r}")
        return int(text)

    def _expect(self, token: str) -> None:
        if self._take().lower() != token:
            raise self._error(f"expected {token!r}")

    def _take(self) -> str:
        token = self._next
        if not token:
            raise self._error("unexpected end")
        self._next = next(self._tokens, "")
        return token

    def _error(self, why: str) -> InvalidJob:
        return InvalidJob(f"invalid schema {self._text!r}: {why}. Write it like 'word string, count long'.")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidJob(f"invalid schema {text!r}, at {text[at:]!r}. Write it like 'word string, count long'.")
        yield match.group(1)
        at = match.end()


def _unquote(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
