"""Response times: from the arrival of a batch to the publication of its results."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.demo.timeline import Period, Timeline


class Summary(NamedTuple):
    """Response times in milliseconds of the batches of one step."""

    median: float
    p90: float
    maximum: float
    batches: int


def response_times(timeline: Timeline) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the arrival time and the response time in seconds of every batch."""
    arrival = np.array([timeline.arrival(batch) for batch in range(len(timeline.published))], np.float64)
    return arrival, np.array(timeline.published, np.float64) - arrival


def summarise(timeline: Timeline, period: Period) -> Summary:
    """Summarise the batches in flight at any time during the step; for a steady step, those entirely within it."""
    arrival, seconds = response_times(timeline)
    first, last = (arrival, arrival + seconds) if period.kind == "steady" else (arrival + seconds, arrival)
    chosen = seconds[(first >= period.began) & (last <= period.ended)] * 1_000
    if not len(chosen):
        return Summary(np.nan, np.nan, np.nan, 0)
    median, p90, maximum = np.quantile(chosen, [0.5, 0.9, 1.0])
    return Summary(float(median), float(p90), float(maximum), len(chosen))
