"""Approximate projected costs, for processes with too many partitions for exact ones: a trained additive value."""

from mdp.approximate.foresight import Foresight
from mdp.approximate.lookahead import Lookahead
from mdp.approximate.projection import AdditiveProjection
from mdp.approximate.training import train

__all__ = ["AdditiveProjection", "Foresight", "Lookahead", "train"]
