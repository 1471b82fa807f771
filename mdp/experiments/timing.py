"""How long a call takes, over calls that differ."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

MICROSECOND = 1e-6


class Timing(NamedTuple):
    """Microseconds a call: the median, and what a tenth of the calls stays below and above."""

    median: float
    p10: float
    p90: float
    calls: int


def timed(calls: Sequence[Callable[[], object]], seconds: float, most_rounds: int = 2_000) -> Timing:
    """All calls in turn, round after round for about so long, after one round that does not count."""
    for call in calls:
        call()
    spent: list[float] = []
    deadline, rounds = time.perf_counter() + seconds, 0
    while not rounds or (time.perf_counter() < deadline and rounds < most_rounds):
        for call in calls:
            began = time.perf_counter()
            call()
            spent.append(time.perf_counter() - began)
        rounds += 1
    p10, median, p90 = np.quantile(spent, (0.1, 0.5, 0.9)) / MICROSECOND
    return Timing(float(median), float(p10), float(p90), len(spent))
