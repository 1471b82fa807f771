"""A job in threads of this process, fed with batches on a clock."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import elastic
from elastic.local import LocalNetwork
from elastic.local.run import TableSource
from examples.harness.application import Application, RunningStream
from examples.harness.results import Results

_POLL_SECONDS = 0.002
_MILLISECOND = 1e-3


@contextmanager
def run_in_threads(
    application: Application, results: Results, *, batches: int, paced: bool, **options: Any
) -> Iterator[RunningStream]:
    """Start the job, feed it with that many batches, and stop it at the end of the block.

    `options` are those of `elastic.local_run`, such as `nodes` and `tasks`. A batch arrives when its event time says
    so; unless `paced`, as soon as the job has ingested the one before the last.
    """
    network = LocalNetwork()
    source = TableSource(network)
    job = elastic.local_run(
        source,
        inputs=application.inputs(),
        operator=application.stages(),
        name=application.name,
        sink=results,
        network=network,
        **options,
    )
    with job:
        feeder = Feeder(source, application, batches, paced=paced)
        feeder.start()
        try:
            yield RunningStream(job, lambda: feeder.arrivals)
        finally:
            feeder.stop()


class Feeder:
    """A thread that appends the batches of an application to a source."""

    def __init__(self, source: TableSource, application: Application, batches: int, *, paced: bool) -> None:
        self._source = source
        self._application = application
        self._batches = batches
        self._every_seconds = application.pace.every_ms * _MILLISECOND if paced else None
        self._arrivals: list[float] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    @property
    def arrivals(self) -> list[float]:
        """When every batch so far arrived, in seconds since 1970."""
        return list(self._arrivals)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        began = time.time()
        for number in range(self._batches):
            rows = self._application.batch(number)
            arrival = (
                self._wait_for_room(number) if self._every_seconds is None else began + number * self._every_seconds
            )
            if self._stopped.wait(max(0.0, arrival - time.time())):
                return
            self._arrivals.append(arrival)
            self._source.append(rows)

    def _wait_for_room(self, number: int) -> float:
        while self._source.ingested < number - 1 and not self._stopped.is_set():
            time.sleep(_POLL_SECONDS)
        return time.time()
