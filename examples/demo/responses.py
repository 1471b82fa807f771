"""Response times: from the moment that texts come to the moment that the patterns with them can be read."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from examples.demo.diary import Diary, Episode


class Summary(NamedTuple):
    """Milliseconds of the batches of one episode."""

    median: float
    p90: float
    worst: float
    batches: int


def times(diary: Diary) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """When the texts of every batch came, and how many seconds later its results could be read."""
    came = np.array([diary.came(batch) for batch in range(len(diary.shown))], np.float64)
    return came, np.array(diary.shown, np.float64) - came


def summary(diary: Diary, episode: Episode) -> Summary:
    """Of the batches that were on their way at any moment of the episode; of a steady one, all the time."""
    came, seconds = times(diary)
    first, last = (came, came + seconds) if episode.kind == "steady" else (came + seconds, came)
    chosen = seconds[(first >= episode.began) & (last <= episode.ended)] * 1_000
    if not len(chosen):
        return Summary(np.nan, np.nan, np.nan, 0)
    median, p90, worst = np.quantile(chosen, [0.5, 0.9, 1.0])
    return Summary(float(median), float(p90), float(worst), len(chosen))
