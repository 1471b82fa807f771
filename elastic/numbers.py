"""Numbers from callers: NumPy's are accepted wherever Python's are, and become Python's, which JSON can write."""

import operator
from numbers import Integral, Real


def as_whole(value: object) -> int | None:
    """Return a whole number as an int, None for anything else; truth values and 2.0 are none."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def as_number(value: object) -> int | float | None:
    """Return a real number as an int or a float, None for anything else; truth values are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return int(value) if isinstance(value, Integral) else float(value)
