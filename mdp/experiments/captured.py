"""How much of what exact values save over `ssm` an approximation saves too, with its spread."""

from typing import NamedTuple

import numpy as np

from mdp.experiments.contests import SSM
from mdp.experiments.lab import EXACT, TWO_STEPS
from mdp.simulate import Comparison


class Share(NamedTuple):
    mean: float
    spread: float


def captured(found: Comparison, policy: str = TWO_STEPS) -> Share | None:
    """(ssm - policy) / (ssm - exact) of the means, with the jackknife's standard error; None if nothing is saved.

    A ratio of two sums over the same sequences: leaving out one sequence after the other tells how much it varies.
    """
    ours = found.moved[SSM] - found.moved[policy]
    best = found.moved[SSM] - found.moved[EXACT]
    if best.mean() <= 0:
        return None
    count = len(best)
    without = (ours.sum() - ours) / (best.sum() - best) if count > 1 else np.zeros(1)
    spread = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    return Share(float(ours.sum() / best.sum()), float(spread))
