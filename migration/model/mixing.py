"""A hash of 64-bit numbers, for points on a ring, synthetic keys and second choices of a key."""

import numpy as np
from numpy.typing import NDArray

GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)  # the step of SplitMix64: a sequence n * step, mixed, is its stream


def mix_numbers(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's output for each state: a bijection whose results look independent of the numbers."""
    mixed = numbers + GOLDEN_GAMMA
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)
