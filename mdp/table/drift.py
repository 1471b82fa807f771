"""How far a workload is from the one that a table was projected for."""

import numpy as np

from mdp.kernels.paths import Floats
from migration import Workload

MOST_DRIFT = 0.1  # a tenth of work or state on other tasks than then: noise of measuring is below, a new day above


def drift(then: Workload, now: Workload) -> float:
    """The share of all work, or of all state, that is on other tasks now: the larger of the two, 0 to 1.

    Half the sum over tasks of |share then - share now| (total variation). Growth that all tasks share is no drift:
    balance and cost only know shares.
    """
    return max(_moved(then.work, now.work), _moved(then.state, now.state))


def _moved(then: Floats, now: Floats) -> float:
    return float(np.abs(_shares(then) - _shares(now)).sum()) / 2


def _shares(weights: Floats) -> Floats:
    total = weights.sum()
    return weights / total if total else np.full(len(weights), 1 / len(weights))
