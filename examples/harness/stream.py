"""A job that runs on a stream of numbered batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import elastic


@dataclass(frozen=True)
class RunningStream:
    """The job, and when every batch so far arrived at its source, in seconds since 1970."""

    job: elastic.Job
    arrivals: Callable[[], Sequence[float]]
