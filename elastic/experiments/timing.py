"""Measure the time of calls."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

MICROSECOND = 1e-6


class CallTimes(NamedTuple):
    """Microseconds per call: the median, and the 10th and 90th percentiles."""

    median: float
    p10: float
    p90: float
    calls: int


def time_calls(calls: Sequence[Callable[[], object]], seconds: float, max_rounds: int = 2_000) -> CallTimes:
    """Time all calls in turn, in rounds for about `seconds`, after one round of warm-up."""
    for call in calls:
        call()
    spent: list[float] = []
    deadline, rounds = time.perf_counter() + seconds, 0
    while not rounds or (time.perf_counter() < deadline and rounds < max_rounds):
        for call in calls:
            began = time.perf_counter()
            call()
            spent.append(time.perf_counter() - began)
        rounds += 1
    p10, median, p90 = np.quantile(spent, (0.1, 0.5, 0.9)) / MICROSECOND
    return CallTimes(float(median), float(p10), float(p90), len(spent))
