"""Projected migration costs where there are too many partitions for exact ones: an additive value, trained."""

from mdp.approximate.foresight import Foresight
from mdp.approximate.lookahead import Lookahead
from mdp.approximate.projection import AdditiveProjection
from mdp.approximate.training import Progress, train

__all__ = ["AdditiveProjection", "Foresight", "Lookahead", "Progress", "train"]
