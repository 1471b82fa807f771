"""One-line representations of operators: the class, and the arguments that are short."""

import inspect
from collections.abc import Mapping
from typing import Any

_MOST_CHARACTERS = 40  # of an argument
_SIMPLE = (str, int, float, bool, tuple, list)
_MISSING = object()


def describe_operator(operator: Any) -> str:
    """Return the class with those arguments of its constructor that are short and not the default.

    An argument is found as an attribute of its name, with or without an underscore. Never raises: a user's operator may
    have attributes that do.
    """
    try:
        parts = list(_describe_arguments(operator))
    except Exception:  # noqa: BLE001 - a representation must not fail
        parts = ["..."]
    return f"{type(operator).__name__}({', '.join(parts)})"


def _describe_arguments(operator: Any) -> Any:
    if type(operator).__init__ is object.__init__:
        return
    for parameter in inspect.signature(type(operator)).parameters.values():
        value = _find(operator, parameter.name)
        if value is _MISSING or value is parameter.default or _is_converted(parameter, value):
            continue
        is_named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        if parameter.kind is parameter.VAR_KEYWORD and isinstance(value, Mapping):
            yield from (f"{name}={_shorten(each)}" for name, each in value.items())
        elif parameter.kind is parameter.VAR_POSITIONAL and isinstance(value, tuple | list):
            yield from map(_shorten, value)
        elif _is_short(value) and value != parameter.default:
            yield f"{parameter.name}={_shorten(value)}" if is_named else _shorten(value)


def _is_short(value: Any) -> bool:
    return isinstance(value, _SIMPLE) or type(value).__module__.startswith("elastic.")


def _is_converted(parameter: inspect.Parameter, value: Any) -> bool:
    """Return whether the attribute is not what was given: a duration as a number, say."""
    is_one = parameter.kind is not parameter.VAR_POSITIONAL
    return is_one and parameter.annotation in (str, str | None) and not isinstance(value, str)


def _find(operator: Any, name: str) -> Any:
    fields = vars(operator)
    return fields.get(f"_{name}", fields.get(name, _MISSING))


def _shorten(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
