"""Split records into windows of equal length: vectorised, O(records)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdp.errors import DuplicatedTime, GapInLog, InvalidLog
from mdp.learning.logs import Floats, Ints, Log, Times, format_time
from mdp.learning.recipe import Recipe

MICROSECONDS = 1_000_000


@dataclass(frozen=True, eq=False)
class Windows:
    """`values[i]` is that of window `numbers[i]`: the time from `numbers[i] * width` to the next, in us since 1970.

    Numbers rise. Windows of one `run` follow each other without a gap, and runs are numbered from 0.
    """

    numbers: Ints
    values: Floats
    runs: Ints
    width: int

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def starts(self) -> Times:
        return (self.numbers * self.width).view("datetime64[us]")


_Combination = Callable[[Floats, Ints, Ints], Floats]  # values, where each window begins, how many records it has

_COMBINATIONS: Mapping[str, _Combination] = {
    "sum": lambda values, begins, _: np.add.reduceat(values, begins),
    "mean": lambda values, begins, records: np.add.reduceat(values, begins) / records,
    "max": lambda values, begins, _: np.maximum.reduceat(values, begins),
    "last": lambda values, begins, records: values[begins + records - 1],
}


def split_into_windows(log: Log, recipe: Recipe) -> Windows:
    """Split a log into windows; gaps and duplicates are handled, or raise an error, as the recipe says.

    Windows begin at whole multiples of their length since 1970, so that an hour is an hour of the clock. A sum over a
    window that the log covers only in part would look like a small load; such windows, at the ends of the log and of a
    gap, are left out.
    """
    width = window_width(recipe)
    times, values = merge_duplicates(log, recipe.duplicates)
    number = times // width
    begins = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    records = np.diff(begins, append=len(number))
    numbers = number[begins]
    loads = _COMBINATIONS[recipe.combine or "last"](values, begins, records)
    if recipe.combine == "sum":
        whole = _whole(times, numbers, begins, records, width)
        numbers, loads = numbers[whole], loads[whole]
        check_any_window(len(numbers), width)
    return _fill_gaps(numbers, loads, width, recipe.gaps)


def window_width(recipe: Recipe) -> int:
    """The length of a window in microseconds."""
    return round((recipe.window_seconds or 0) * MICROSECONDS)


def slack(first: int, last: int, moments: int) -> float:
    """How far the outermost record may be from the end of a window: one mean step between records."""
    return (last - first) / (moments - 1) if moments > 1 else np.inf


def check_any_window(windows: int, width: int) -> None:
    if not windows:
        raise InvalidLog(f"the log covers no whole window of {width / MICROSECONDS:g} s. Give shorter windows.")


def gap_error(after: int, until: int, empty: int, width: int) -> GapInLog:
    """The error for a gap between two windows."""
    ends = np.array([(after + 1) * width, until * width]).view("datetime64[us]")
    return GapInLog(format_time(ends[0]), format_time(ends[1]), empty)


def merge_duplicates(log: Log, duplicates: str) -> tuple[Ints, Floats]:
    """Combine records with the same timestamp into one value."""
    times = log.times.view(np.int64)
    begins = np.flatnonzero(np.diff(times, prepend=times[0] - 1))
    records = np.diff(begins, append=len(times))
    if len(begins) == len(times):
        return times, log.values
    if duplicates == "error":
        twice = records > 1
        raise DuplicatedTime(format_time(log.times[begins[np.argmax(twice)]]), int(twice.sum()))
    return times[begins], _COMBINATIONS[duplicates](log.values, begins, records)


def _whole(times: Ints, numbers: Ints, begins: Ints, records: Ints, width: int) -> NDArray[np.bool_]:
    """The windows that the log covers: those with neighbours on both sides, and those that records reach the end of."""
    allowed = slack(int(times[0]), int(times[-1]), len(times))
    after_gap = np.diff(numbers, prepend=numbers[0] - 2) > 1
    before_gap = np.diff(numbers, append=numbers[-1] + 2) > 1
    late = times[begins] - numbers * width > allowed
    early = (numbers + 1) * width - times[begins + records - 1] > allowed
    whole: NDArray[np.bool_] = ~((after_gap & late) | (before_gap & early))
    return whole


def _fill_gaps(numbers: Ints, values: Floats, width: int, gaps: str) -> Windows:
    steps = np.diff(numbers)
    empty = int((steps - 1).sum())
    if empty and gaps == "error":
        place = int(np.argmax(steps > 1))
        raise gap_error(int(numbers[place]), int(numbers[place + 1]), empty, width)
    if gaps == "hold":
        filled = np.arange(numbers[0], numbers[-1] + 1)
        return Windows(filled, np.repeat(values, np.append(steps, 1)), np.zeros_like(filled), width)
    runs = np.concatenate([[0], np.cumsum(steps > 1)])
    return Windows(numbers, values, runs, width)
