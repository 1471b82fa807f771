"""Evaluate a policy: the cost of a fixed choice of targets."""

import numpy as np
from numpy.typing import NDArray

from mdp.kernels.improve import Targets
from mdp.kernels.paths import Floats, Ints
from migration.optional_compiling import compiled


@compiled
def settle(
    values: Floats,
    start: int,
    base: Floats,
    target: Targets,
    target_start: Ints,
    weight: Floats,
    scale: float,
    rows: Ints,
) -> float:
    """Set the values of some partitions onto n nodes to what their choices cost; the largest change.

    C[P] = (base + sum of weight * C[target]) * scale, in place, so that later rows see what earlier ones became. `base`
    is the expected cost of the next migration; `scale` solves for a partition that stays when n nodes stay n.
    """
    largest = 0.0
    for row in rows:
        total = base[row]
        for successor in range(len(weight)):
            total += weight[successor] * values[target_start[successor] + target[successor, row]]
        total *= scale
        largest = max(largest, abs(total - values[start + row]))
        values[start + row] = total
    return largest


@compiled
def mark(chosen: NDArray[np.bool_], target: Targets, target_start: Ints) -> None:
    """Mark every partition that is the target of a choice."""
    for successor in range(len(target)):
        for row in range(target.shape[1]):
            chosen[target_start[successor] + target[successor, row]] = True
