"""The synthetic streams of paper 004, section V-A."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from elastic.routing.shuffle.simulation import SimulatedStream
from elastic.routing.shuffle.sketch import Floats

MILLISECOND = 1e-3
MIN_MILLISECONDS = 1
TOP_ENTITY = 0.065  # share of the most frequent entity among the paper's tweets
ENTITY_MILLISECONDS = (25.0, 5.0, 1.0)  # media, politicians, others
ENTITY_SHARES = (0.1, 0.2, 0.7)  # of all entities; the paper does not give them


@dataclass(frozen=True)
class Setting:
    """The parameters of a stream and of the sketches; paper: m, n, w_n, w_max, k and epsilon."""

    rows: int
    items: int
    skew: float = 1.0
    cost_values: int = 64
    max_milliseconds: float = 64.0
    instances: int = 5
    provisioning: float = 1.0  # what the instances can take, over what arrives
    epsilon: float = 0.05
    slowness: tuple[tuple[float, ...], ...] = ()  # by phase and instance; none: all are equal
    tweets: bool = False  # costs by kind of entity instead of equidistant values

    def stream(self, seed: int) -> SimulatedStream:
        """Draw a stream; the seed decides which items occur and what each costs."""
        rng = np.random.default_rng(seed)
        items = rng.choice(self.items, self.rows, p=frequencies(self.items, self.skew))
        costs = self._item_costs(rng)[items] * MILLISECOND
        slowness = np.array(self.slowness or [[1.0] * self.instances])
        arrivals = np.arange(self.rows) * (costs.mean() / self.instances * self.provisioning)
        return SimulatedStream(rng.permutation(self.items)[items], arrivals, costs, slowness)

    def _item_costs(self, rng: np.random.Generator) -> Floats:
        if self.tweets:
            costs = rng.choice(ENTITY_MILLISECONDS, self.items, p=ENTITY_SHARES)
            costs[0] = ENTITY_MILLISECONDS[1]  # the most frequent entity is a politician
            return costs
        values = np.linspace(MIN_MILLISECONDS, self.max_milliseconds, self.cost_values)
        return rng.permutation(np.resize(values, self.items))


def frequencies(items: int, skew: float) -> Floats:
    """Return the probabilities of items 1 to n: proportional to i^-skew."""
    weights = np.arange(1, items + 1) ** -skew
    return np.asarray(weights / weights.sum())


def fit_skew(items: int, top: float) -> float:
    """Return the skew at which the most frequent item has this probability."""
    return float(brentq(lambda skew: frequencies(items, skew)[0] - top, 0.0, 5.0))
