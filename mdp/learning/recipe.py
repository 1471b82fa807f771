"""Options for learning a matrix from a log, checked before the log is read."""

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from mdp.errors import InvalidRecipe

HOUR_SECONDS: Final = 3600.0

COMBINATIONS: Final[Mapping[str, str]] = {
    "sum": "the load of a window is the sum of its records",
    "mean": "the mean of its records",
    "max": "the largest of them",
    "last": "the latest of them; the only one for node counts",
}
ROUNDINGS: Final[Mapping[str, str]] = {
    "nearest": "to the nearest node count, a half up",
    "up": "to the next one that is not too small",
}
GAPS: Final[Mapping[str, str]] = {
    "error": "a window without records is an error",
    "hold": "it has the value of the window before it",
    "split": "nothing is learned across it",
}
DUPLICATES: Final[Mapping[str, str]] = {
    "error": "two records of one moment are an error",
    "sum": "they are parts of one load, such as that of several files",
    "last": "the later one, in order of files and rows, is true",
}
REPEATS: Final[Mapping[str, str]] = {
    "ignore": "a count that repeats is no migration, as in paper 003, section 6",
    "rebalance": "a count that repeats is a rebalance, as in a list of migrations",
}
_CHOICES: Final = {"rounding": ROUNDINGS, "gaps": GAPS, "duplicates": DUPLICATES, "repeats": REPEATS}


@dataclass(frozen=True)
class Recipe:
    """From (time, load) or (time, nodes) to a matrix over `low` to `high` nodes.

    Loads need a range; for node counts it is that of the log unless it is given. A window of None is an hour for loads;
    for node counts every record is one count, without a check for gaps. The defaults are those of paper
    003, section 6: sums of an hour, scaled so that the smallest becomes `low` and the largest `high`, and a count that
    repeats is no migration.

    A heavy tail presses all other windows onto `low`; `quantiles`, such as (0.01, 0.99), set the loads that become
    `low` and `high`, and loads beyond are clipped. `hysteresis` is by how many nodes a load must leave the band of the
    current count to change it. `smoothing` is the weight of the prior in every row, in observations; rows without
    observations are the prior in any case (see `mdp.learning.smoothing`).
    """

    low: int | None = None
    high: int | None = None
    window_seconds: float | None = None
    combine: str | None = None
    quantiles: tuple[float, float] = (0.0, 1.0)
    rounding: str = "nearest"
    hysteresis: float = 0.0
    gaps: str = "error"
    duplicates: str = "error"
    repeats: str = "ignore"
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", tuple(self.quantiles))
        for name, value in zip(("low", "high"), check_range(self.low, self.high), strict=True):
            object.__setattr__(self, name, value)
        for name, known in _CHOICES.items():
            check_choice(name, getattr(self, name), known)
        if self.combine is not None:
            check_choice("combine", self.combine, COMBINATIONS)
        for name in ("hysteresis", "smoothing"):
            check_amount(name, getattr(self, name))
        if self.window_seconds is not None:
            check_amount("window_seconds", self.window_seconds)
            if self.window_seconds < 1e-3:
                raise InvalidRecipe(f"a window of {self.window_seconds:g} s is too short. Give a millisecond or more.")
        if len(self.quantiles) != 2 or not 0 <= self.quantiles[0] < self.quantiles[1] <= 1:
            raise InvalidRecipe(f"quantiles are {self.quantiles}. Give two shares that rise, such as 0.01 and 0.99.")

    @property
    def range(self) -> tuple[int, int]:
        if self.low is None or self.high is None:
            raise InvalidRecipe("loads need a range of node counts. Give one, such as 8 to 16.")
        return self.low, self.high

    def for_loads(self) -> "Recipe":
        """The recipe with the defaults for loads."""
        _ = self.range
        return self._with(self.window_seconds or HOUR_SECONDS, self.combine or "sum")

    def for_nodes(self) -> "Recipe":
        """The recipe with the defaults for node counts, which are never added up."""
        if self.combine not in (None, "last") or self.duplicates == "sum":
            raise InvalidRecipe(
                "node counts are not combined. Leave combine at 'last', and duplicates other than 'sum'."
            )
        return self._with(self.window_seconds, "last")

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "quantiles": list(self.quantiles)}

    def _with(self, window_seconds: float | None, combine: str) -> "Recipe":
        return Recipe(**{**asdict(self), "window_seconds": window_seconds, "combine": combine})


def check_range(low: int | None, high: int | None) -> tuple[int | None, int | None]:
    """Return both or neither as Python integers; at least two counts, because one alone has no transitions."""
    if (low is None) != (high is None):
        raise InvalidRecipe("only one end of the range of node counts was given. Give both low and high.")
    if low is None or high is None:
        return None, None
    if not (hasattr(low, "__index__") and hasattr(high, "__index__") and 1 <= low < high):
        raise InvalidRecipe(f"the range {low} to {high} has no two node counts. Give 1 <= low < high.")
    return operator.index(low), operator.index(high)


def check_choice(name: str, value: object, known: Mapping[str, str]) -> None:
    if value not in known:
        raise InvalidRecipe(f"there is no {name}={value!r}. Use one of {', '.join(known)}.")


def check_amount(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidRecipe(f"{name} is {value!r}. Give a number of at least 0.")
