"""Convert loads to node counts: a linear scale, rounding, and hysteresis."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from mdp.errors import InvalidLog
from mdp.learning.logs import Floats, Ints
from mdp.learning.recipe import ROUNDINGS, check_amount, check_choice, check_range

# Spark adds loads in another order: rounding errors must not move a half (or a whole) to either side.
ROUNDING_SLACK = 1e-9


@dataclass(frozen=True)
class Scaling:
    """x(load) = low + (high - low) * (load - least) / (most - least), kept within `low` and `high`.

    Paper 003, section 6, with the least and the most load of the log; x is in nodes, not yet rounded.
    """

    low: int
    high: int
    least: float
    most: float

    def __post_init__(self) -> None:
        for name, value in zip(("low", "high"), check_range(self.low, self.high), strict=True):
            object.__setattr__(self, name, value)
        if not self.least < self.most:
            raise InvalidLog(
                f"no load is above {self.most:g} or below {self.least:g}, so there is nothing to scale. "
                "Give a longer log, other windows, or quantiles that are further apart."
            )

    @classmethod
    def fit(cls, loads: Sequence[float] | Floats, low: int, high: int, quantiles: tuple[float, float] = (0, 1)) -> Self:
        """The scaling for these loads; loads beyond the quantiles are clipped."""
        least, most = np.quantile(np.asarray(loads, np.float64), quantiles)
        return cls(low, high, float(least), float(most))

    def nodes(self, loads: Sequence[float] | Floats) -> Floats:
        """The nodes that loads need, as fractions."""
        share = (np.asarray(loads, np.float64) - self.least) / (self.most - self.least)
        scaled: Floats = self.low + (self.high - self.low) * np.clip(share, 0.0, 1.0)
        return scaled

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def round_nodes(needed: Floats, rounding: str) -> Ints:
    """Round to `floor(x + 1/2)` or `ceil(x)`, with a slack of a billionth of a node."""
    check_choice("rounding", rounding, ROUNDINGS)
    if rounding == "nearest":
        return np.floor(needed + (0.5 + ROUNDING_SLACK)).astype(np.int64)
    return np.ceil(needed - ROUNDING_SLACK).astype(np.int64)


def apply_hysteresis(needed: Floats, rounding: str, hysteresis: float) -> Ints:
    """Change the count only when the need leaves the band of the current one, to the rounded need.

    The band of n is what rounds to n, wider by `hysteresis` at both ends; with rounding up at the lower end only,
    because a load that does not fit needs a node at once. Every count depends on the one before, so this is a plain
    loop: a decade of hours takes some hundredths of a second.
    """
    check_amount("hysteresis", hysteresis)
    targets = round_nodes(needed, rounding)
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
