"""Runs a job window by window: checks each window, then rebalances; scales when it is time."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import elastic
from elastic.errors import ElasticError
from examples.harness.application import Application, RunningStream, WindowCheck, concat, count_rows
from examples.harness.balance import ScaleStep, count_entries, measure_imbalance
from examples.harness.results import Results

_POLL_SECONDS = 0.01
_STALLED_SECONDS = 60.0  # without a published batch


@dataclass(frozen=True)
class RunSettings:
    """Duration of a run, the action at the end of every interval, and the times of scaling."""

    intervals: int
    rebalance: Callable[[elastic.Job], object] = lambda _job: None
    steps: tuple[ScaleStep, ...] = ()


class Window(NamedTuple):
    """One window that was checked, and how its rows are distributed by the routing at its end."""

    number: int
    rows: int
    check: WindowCheck
    imbalance: float  # rows of the node with most of them, divided by the mean
    nodes: int
    entries: int
    seconds: float  # since the window before was published, or since the start


class Summary(NamedTuple):
    """A run: all windows, and what was measured after the first one, unless it is the only one.

    In the first window compiled code is loaded. Latencies are from the arrival of a batch to the publication of its
    results.
    """

    windows: Sequence[Window]
    rows: int
    seconds: float
    latency_ms: Sequence[float]  # of the batches with results

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def is_right(self) -> bool:
        return bool(self.windows) and all(window.check.difference is None for window in self.windows)

    @property
    def mean_imbalance(self) -> float:
        return float(np.mean([window.imbalance for window in self.windows]))

    def latency_quantile(self, share: float) -> float:
        return float(np.quantile(self.latency_ms, share))


def run_windows(
    application: Application,
    stream: RunningStream,
    results: Results,
    settings: RunSettings,
    on_window: Callable[[Window], None] = lambda _window: None,
) -> Summary:
    """Check every window as soon as all of its results are published, and rebalance the job after each."""
    job, auditor = stream.job, application.make_auditor()
    scaling = _Scaling(job, settings.steps)
    windows: list[Window] = []
    rows, since = 0, time.monotonic()
    for interval in range(settings.intervals):
        given = concat([application.batch(number) for number in application.pace.batches_of(interval)])
        of_interval = count_rows(given)
        rows += of_interval
        _wait_for_rows(job, results, rows, scaling)
        since, seconds = time.monotonic(), time.monotonic() - since
        check = auditor.check(interval, given, results.take())
        routing = job.routing()
        stage = job.pipeline.stage_number(application.balanced[0])
        imbalance = measure_imbalance(routing, application.keys_of(given), stage)
        nodes, entries = len(routing.assignment.nodes), count_entries(routing)
        windows.append(Window(interval, of_interval, check, imbalance, nodes, entries, seconds))
        on_window(windows[-1])
        settings.rebalance(job)
    return _summarise(application, windows, stream.arrivals(), results.published)


def _summarise(
    application: Application, windows: Sequence[Window], arrivals: Sequence[float], published: Mapping[int, float]
) -> Summary:
    warm = windows[1:] or windows
    first, stop = application.pace.batches_of(warm[0].number).start, application.pace.batches_of(warm[-1].number).stop
    measured = {batch: at for batch, at in published.items() if first <= batch < stop}
    latency_ms = [(at - arrivals[batch]) * 1_000 for batch, at in measured.items()]
    return Summary(windows, sum(window.rows for window in warm), sum(window.seconds for window in warm), latency_ms)


class _Scaling:
    """The steps that are still to come."""

    def __init__(self, job: elastic.Job, steps: Sequence[ScaleStep]) -> None:
        self._job = job
        self._began = time.monotonic()
        self._steps = sorted(steps, key=lambda step: step.seconds)

    def poll(self) -> None:
        while self._steps and time.monotonic() - self._began >= self._steps[0].seconds:
            self._job.scale(self._steps.pop(0).nodes, queue=True)


def _wait_for_rows(job: elastic.Job, results: Results, rows: int, scaling: _Scaling) -> None:
    """Wait until the results of this many rows are delivered; of more if more are there."""
    newest, progress, since = None, -1, time.monotonic()
    while newest is None or results.last_batch < newest:
        job.await_termination(_POLL_SECONDS)
        scaling.poll()
        if newest is None and job.status().rows >= rows:
            newest = job.batches()[0]
        if results.last_batch > progress:
            progress, since = results.last_batch, time.monotonic()
        elif time.monotonic() - since > _STALLED_SECONDS:
            raise ElasticError(
                f"timed out after {_STALLED_SECONDS:.0f} s without a published batch. Lower the rate or the cost, or "
                "add nodes."
            )
