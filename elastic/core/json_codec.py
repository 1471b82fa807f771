"""Messages as JSON, derived from their type hints once per class.

A message becomes an object of its fields, a named tuple a list of them, a `UnitId` its number, a dict a list of pairs
(JSON has only text as keys). A class with `to_json` and `from_json` of its own is written by these.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from elastic.core.ids import UnitId

_PLAIN = (str, int, float, bool, NoneType)
_KNOWN_UNITS = 1 << 16  # remembered, because the same few are decoded in every step


def _keep(value: Any) -> Any:
    return value


class Codec(NamedTuple):
    """Encodes and decodes values of one type; `_keep` where the value is JSON as it is."""

    encode: Callable[[Any], Any] = _keep
    decode: Callable[[Any], Any] = _keep


def derive_codec(kind: Any) -> Codec:
    """Return the codec of a dataclass, made from its fields; `TypeError` if there is none for one of them."""
    hints = get_type_hints(kind)
    codecs = {field.name: _codec_of(hints[field.name]) for field in fields(kind)}
    encoders = [(name, codec.encode) for name, codec in codecs.items() if codec.encode is not _keep]
    decoders = [(name, codec.decode) for name, codec in codecs.items() if codec.decode is not _keep]

    def encode_fields(value: Any) -> dict[str, Any]:
        document = dict(vars(value))
        for name, encode in encoders:
            document[name] = encode(document[name])
        return document

    def decode_fields(document: dict[str, Any]) -> Any:
        arguments = dict(document)
        for name, decode in decoders:
            arguments[name] = decode(arguments[name])
        return kind(**arguments)

    return Codec(encode_fields, decode_fields)


def _codec_of(hint: Any) -> Codec:
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    if hint in _PLAIN or hint is Any:
        return Codec()
    if hint is UnitId:
        return Codec(attrgetter("number"), _unit_of)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _optional(hint, [argument for argument in arguments if argument is not NoneType])
    if origin is tuple and arguments[1:] == (...,):
        return _tuple_of(_codec_of(arguments[0]))
    if origin is dict:
        return Codec() if arguments == (str, Any) else _pairs(*map(_codec_of, arguments))
    if hasattr(hint, "from_json"):
        return Codec(hint.to_json, hint.from_json)
    if hasattr(hint, "_fields"):
        return _named_tuple(hint)
    raise TypeError(f"a message cannot hold {hint!r}. Give the type to_json and from_json, or teach the codec.")


@lru_cache(_KNOWN_UNITS)
def _unit_of(number: int) -> UnitId:
    return UnitId.from_number(number)


def _optional(hint: Any, alternatives: list[Any]) -> Codec:
    if len(alternatives) != 1:
        raise TypeError(f"a message cannot hold {hint!r}: the text would not say which of them it is.")
    encode, decode = _codec_of(alternatives[0])
    return Codec(
        _keep if encode is _keep else lambda value: None if value is None else encode(value),
        _keep if decode is _keep else lambda document: None if document is None else decode(document),
    )


def _tuple_of(item: Codec) -> Codec:
    encode, decode = item
    return Codec(
        _keep if encode is _keep else lambda values: list(map(encode, values)),
        tuple if decode is _keep else lambda document: tuple(map(decode, document)),
    )


def _pairs(key: Codec, value: Codec) -> Codec:
    return Codec(
        lambda values: [[key.encode(one), value.encode(other)] for one, other in values.items()],
        lambda document: {key.decode(one): value.decode(other) for one, other in document},
    )


def _named_tuple(kind: Any) -> Codec:
    hints = get_type_hints(kind)
    codecs = [_codec_of(hints[name]) for name in kind._fields]
    if all(codec == Codec() for codec in codecs):
        return Codec(_keep, lambda document: kind(*document))
    encoders, decoders = [codec.encode for codec in codecs], [codec.decode for codec in codecs]
    return Codec(
        lambda values: [encode(value) for encode, value in zip(encoders, values, strict=True)],
        lambda document: kind(*[decode(value) for decode, value in zip(decoders, document, strict=True)]),
    )
