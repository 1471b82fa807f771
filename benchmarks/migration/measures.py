"""What is measured: when records entered and when their results could be read, and what that says about a window."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.int64]  # in microseconds since 1970


@dataclass(frozen=True)
class Responses:
    """One entry a record. A result is `stored` when it is durable, and `readable` when a consumer may see it."""

    entered: Moments
    stored: Moments
    readable: Moments
    task: NDArray[np.int64]


class Window(NamedTuple):
    """A stretch of time between two moments."""

    began: int
    ended: int

    @property
    def seconds(self) -> float:
        return (self.ended - self.began) / 1e6


class Milliseconds(NamedTuple):
    """Response times of a window."""

    p50: float
    p99: float
    peak: float
    records: int


class Silence(NamedTuple):
    """The longest time in seconds that one of some tasks gave no result: none readable, and none stored."""

    readable: float
    stored: float


def within(responses: Responses, window: Window) -> Milliseconds:
    """Of records that entered in the window."""
    return _summary(responses, (responses.entered >= window.began) & (responses.entered < window.ended))


def touched_by(responses: Responses, window: Window) -> Milliseconds:
    """Of records that were on their way at any moment of the window."""
    return _summary(responses, (responses.readable >= window.began) & (responses.entered <= window.ended))


def silence(responses: Responses, tasks: frozenset[int], window: Window) -> Silence:
    """Of the tasks that is worst off; silences that began before the window or end after it count whole."""
    chosen = np.isin(responses.task, list(tasks))
    which = responses.task[chosen]
    return Silence(
        _longest_gap(responses.readable[chosen], which, window), _longest_gap(responses.stored[chosen], which, window)
    )


def _longest_gap(moments: Moments, tasks: NDArray[np.int64], window: Window) -> float:
    order = np.lexsort((moments, tasks))
    moments, tasks = moments[order], tasks[order]
    before, after = moments[:-1], moments[1:]
    counts = (tasks[1:] == tasks[:-1]) & (after >= window.began) & (before <= window.ended)
    return float((after - before)[counts].max(initial=0) / 1e6)


def _summary(responses: Responses, chosen: NDArray[np.bool_]) -> Milliseconds:
    spent = (responses.readable - responses.entered)[chosen] / 1e3
    if not len(spent):
        return Milliseconds(np.nan, np.nan, np.nan, 0)
    p50, p99, peak = np.quantile(spent, [0.5, 0.99, 1.0])
    return Milliseconds(float(p50), float(p99), float(peak), len(spent))
