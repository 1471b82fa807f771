"""Look up strategies and schedules by name."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from migration.errors import UnknownOption, UnknownStrategy

_Answer = TypeVar("_Answer")


def find_variant(
    kind: str, table: Mapping[str, Callable[..., _Answer]], name: object, options: Iterable[str]
) -> Callable[..., _Answer]:
    """Return the entry of that name; raise for an unknown name, or for an option that the entry does not take."""
    chosen = table.get(name) if isinstance(name, str) else None
    if chosen is None:
        raise UnknownStrategy(kind, name, table)
    for option in options:
        if option not in _options_of(chosen):
            raise UnknownOption(kind, str(name), option, _options_of(chosen))
    return chosen


@cache
def _options_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters besides the first one, the problem."""
    return tuple(inspect.signature(function).parameters)[1:]
