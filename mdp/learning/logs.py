"""Logs: loads or node counts at points in time, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mdp.errors import InvalidLog

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Times = NDArray[np.datetime64]
Moment = datetime | np.datetime64 | str

HOLDINGS = ("load", "nodes")


@dataclass(frozen=True, eq=False)
class Log:
    """`values[i]` was recorded at `times[i]`.

    Invariant: at least one record; times are `datetime64[us]` and never fall (records of one moment stay in the order
    in which they came); loads are finite and not negative, node counts whole and at least 1; read-only. Times are those
    of the log's own clock; where they name a time zone, UTC. `source` names its origin.
    """

    times: Times
    values: Floats
    holds: str = "load"
    source: str = ""

    def __init__(
        self,
        times: Sequence[Any] | NDArray[Any],
        values: Sequence[float] | Floats,
        holds: str = "load",
        source: str = "",
    ) -> None:
        if holds not in HOLDINGS:
            raise InvalidLog(f"a log holds {' or '.join(HOLDINGS)}, not {holds!r}. Say which.")
        moments, numbers = _moments(times), np.array(values, np.float64)
        if moments.shape != numbers.shape or moments.ndim != 1:
            raise InvalidLog(
                f"there are {moments.size} times and {numbers.size} values. Give as many of each, in a row."
            )
        if not len(moments):
            raise InvalidLog("the log is empty. Give one with records.")
        check_values(moments, numbers, holds)
        if (moments[1:] < moments[:-1]).any():
            order = np.argsort(moments, kind="stable")
            moments, numbers = moments[order], numbers[order]
        for name, column in (("times", moments), ("values", numbers)):
            column.setflags(write=False)
            object.__setattr__(self, name, column)
        object.__setattr__(self, "holds", holds)
        object.__setattr__(self, "source", source)

    def __len__(self) -> int:
        return len(self.times)

    def split(self, at: Moment) -> tuple[Self, Self]:
        """The part before `at`, and the rest."""
        cut = find_cut(self.times, at)
        parts = slice(None, cut), slice(cut, None)
        before, after = (type(self)(self.times[part], self.values[part], self.holds, self.source) for part in parts)
        return before, after


def find_cut(times: Times, at: Moment) -> int:
    """The number of times before `at`; raises if one part would be empty."""
    moment = np.asarray(at, "datetime64[us]")[()]
    cut = int(np.searchsorted(times, moment))
    if not 0 < cut < len(times):
        first, last = format_time(times[0]), format_time(times[-1])
        raise InvalidLog(f"{format_time(moment)} leaves one part empty. Split between {first} and {last}.")
    return cut


def check_values(times: Times, values: Floats, holds: str) -> None:
    """Raise for the first invalid record, in the order of the log."""
    if (bad := np.isnat(times)).any():
        raise InvalidLog(f"record {int(np.argmax(bad)) + 1} has no time. Fix or remove it.")
    bad = ~np.isfinite(values) | (values < 0)
    if holds == "nodes":
        bad |= (values < 1) | (values != np.floor(values))
    if bad.any():
        place = int(np.argmax(bad))
        raise bad_value_error(holds, float(values[place]), format_time(times[place]), f"record {place + 1}")


def bad_value_error(holds: str, value: float | None, time: str, place: str) -> InvalidLog:
    wanted = "a number of at least 0" if holds == "load" else "a whole number of nodes, at least 1"
    what = "no value" if value is None else f"the value {value:g}"
    return InvalidLog(f"{place}, of {time}, has {what}, not {wanted}. Fix or remove it.")


def format_time(moment: Any) -> str:
    """Format a point in time for messages."""
    return str(np.datetime_as_string(np.datetime64(moment, "us"), unit="s"))


def _moments(times: Sequence[Any] | NDArray[Any]) -> Times:
    """Convert to timestamps: numbers are seconds since 1970, NumPy parses the rest."""
    given = np.asarray(times)
    try:
        if given.dtype.kind in "iuf":
            return np.rint(given.astype(np.float64) * 1e6).astype(np.int64).view("datetime64[us]")
        return given.astype("datetime64[us]")
    except (TypeError, ValueError) as cause:
        raise InvalidLog(
            f"some time cannot be read: {cause}. Write 2015-02-26 21:42:53, or seconds since 1970."
        ) from cause
