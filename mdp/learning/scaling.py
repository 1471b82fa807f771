"""From loads to node counts: a linear scale, rounding, and a band in which nothing changes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from mdp.errors import InvalidLog
from mdp.learning.logs import Floats, Ints
from mdp.learning.recipe import ROUNDINGS, checked_amount, checked_choice, checked_range

# Loads are added up in another order on Spark: what is a half (or a whole) but for that must not fall on either side.
ROUNDING_SLACK = 1e-9


@dataclass(frozen=True)
class Scaling:
    """x(load) = low + (high - low) * (load - least) / (most - least), kept within `low` and `high`.

    Paper 003, section 6, with the least and the most load of the log; x is in nodes, and not yet whole.
    """

    low: int
    high: int
    least: float
    most: float

    def __post_init__(self) -> None:
        for name, value in zip(("low", "high"), checked_range(self.low, self.high), strict=True):
            object.__setattr__(self, name, value)
        if not self.least < self.most:
            raise InvalidLog(
                f"no load is above {self.most:g} or below {self.least:g}, so there is nothing to scale. "
                "Give a longer log, other windows, or quantiles that are further apart."
            )

    @classmethod
    def fitted(
        cls, loads: Sequence[float] | Floats, low: int, high: int, quantiles: tuple[float, float] = (0, 1)
    ) -> Self:
        """For these loads; with quantiles, what is beyond them is clipped."""
        least, most = np.quantile(np.asarray(loads, np.float64), quantiles)
        return cls(low, high, float(least), float(most))

    def nodes(self, loads: Sequence[float] | Floats) -> Floats:
        """How many nodes loads need, in fractions."""
        share = (np.asarray(loads, np.float64) - self.least) / (self.most - self.least)
        scaled: Floats = self.low + (self.high - self.low) * np.clip(share, 0.0, 1.0)
        return scaled

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def rounded(needed: Floats, rounding: str) -> Ints:
    """`floor(x + 1/2)` or `ceil(x)`, but for a slack of a billionth of a node."""
    checked_choice("rounding", rounding, ROUNDINGS)
    if rounding == "nearest":
        return np.floor(needed + (0.5 + ROUNDING_SLACK)).astype(np.int64)
    return np.ceil(needed - ROUNDING_SLACK).astype(np.int64)


def steadied(needed: Floats, rounding: str, hysteresis: float) -> Ints:
    """The count changes only when what is needed has left the band of the current one, and is then what it rounds to.

    The band of n is what rounds to n, wider by `hysteresis` at both ends; with rounding up only at the lower one,
    because what does not fit needs a node at once. Every count depends on the one before, so this is a plain loop: a
    decade of hours takes some hundredths of a second.
    """
    checked_amount("hysteresis", hysteresis)
    targets = rounded(needed, rounding)
    if not hysteresis or not len(targets):
        return targets
    below, above = (0.5, 0.5) if rounding == "nearest" else (1.0, 0.0)
    below += hysteresis + ROUNDING_SLACK
    above += (hysteresis if rounding == "nearest" else 0.0) + ROUNDING_SLACK
    counts = targets.tolist()
    now = counts[0]
    for place, amount in enumerate(needed.tolist()):
        if now - below <= amount <= now + above:
            counts[place] = now
        else:
            now = counts[place]
    return np.array(counts, np.int64)
