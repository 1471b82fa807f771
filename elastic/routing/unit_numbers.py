"""Unit numbers: the integers by which arrays, input logs and messages name the units of a job (`UnitId.number`)."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

UnitNumbers = npt.NDArray[np.int64]


def to_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Compress ascending unit numbers to ranges [first, last + 1): an interval of tasks is one range."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1][1] = number + 1
        else:
            ranges.append([number, number + 1])
    return ranges
