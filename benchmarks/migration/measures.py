"""Measurements: when records entered and when their results were readable, and summaries over a window."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Moments = NDArray[np.int64]  # in microseconds since 1970


@dataclass(frozen=True)
class Responses:
    """One entry per record. A result is `stored` when it is durable, and `readable` when it is published."""

    entered: Moments
    stored: Moments
    readable: Moments
    task: NDArray[np.int64]


class Window(NamedTuple):
    """The time between two moments."""

    began: int
    ended: int

    @property
    def seconds(self) -> float:
        return (self.ended - self.began) / 1e6


@dataclass(frozen=True)
class Move:
    """One migration from the request to its end; `moving` excludes starting and stopping nodes."""

    window: Window
    moving: Window
    plan_bytes: float = 0.0
    stored_bytes: int = 0
    stays: frozenset[int] = frozenset()  # tasks that do not move


class ResponseTimes(NamedTuple):
    """Response times of a window in milliseconds."""

    p50: float
    p99: float
    peak: float
    records: int


class Silence(NamedTuple):
    """The longest time in seconds without a result of a task: none readable, and none stored."""

    readable: float
    stored: float


def summarise_entered(responses: Responses, window: Window) -> ResponseTimes:
    """Return the response times of records that entered in the window."""
    return _summarise(responses, (responses.entered >= window.began) & (responses.entered < window.ended))


def summarise_affected(responses: Responses, window: Window) -> ResponseTimes:
    """Return the response times of records that were in flight at any moment of the window."""
    return _summarise(responses, (responses.readable >= window.began) & (responses.entered <= window.ended))


def measure_silence(responses: Responses, tasks: frozenset[int], window: Window) -> Silence:
    """Return the longest silence of any of the tasks that overlaps the window, in its full length."""
    selected = np.isin(responses.task, list(tasks))
    which = responses.task[selected]
    return Silence(
        _longest_gap(responses.readable[selected], which, window),
        _longest_gap(responses.stored[selected], which, window),
    )


def _longest_gap(moments: Moments, tasks: NDArray[np.int64], window: Window) -> float:
    order = np.lexsort((moments, tasks))
    moments, tasks = moments[order], tasks[order]
    before, after = moments[:-1], moments[1:]
    overlapping = (tasks[1:] == tasks[:-1]) & (after >= window.began) & (before <= window.ended)
    return float((after - before)[overlapping].max(initial=0) / 1e6)


def _summarise(responses: Responses, selected: NDArray[np.bool_]) -> ResponseTimes:
    spent = (responses.readable - responses.entered)[selected] / 1e3
    if not len(spent):
        return ResponseTimes(np.nan, np.nan, np.nan, 0)
    p50, p99, peak = np.quantile(spent, [0.5, 0.99, 1.0])
    return ResponseTimes(float(p50), float(p99), float(peak), len(spent))
