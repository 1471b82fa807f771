"""Conversion of callers' numbers: NumPy's become Python's, which JSON can encode."""

import operator
from numbers import Integral, Real


def as_int(value: object) -> int | None:
    """Return an integer as an int; None for anything else, booleans and 2.0 included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def as_number(value: object) -> int | float | None:
    """Return a real number as an int or a float; None for anything else, booleans included."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return int(value) if isinstance(value, Integral) else float(value)
