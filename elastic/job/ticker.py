"""Time on an idle stream: while no rows come, the driver commits an empty batch when a processing-time timer is due."""

from elastic.driver.driver import Driver
from elastic.ingest.batch_ingest import BatchIngest


class Ticker:
    """Polled every heartbeat. A timer then fires at most about two heartbeats after it is due, with or without rows.

    Heartbeats say when the next timer of a node is due. A tick is a batch without rows and without a batch of the
    source, so Spark's batch numbers and those of the job differ from the first tick on.
    """

    def __init__(self, driver: Driver, ingest: BatchIngest) -> None:
        self._driver = driver
        self._ingest = ingest

    def poll(self) -> None:
        view = self._driver.view
        if not view.is_idle:
            return  # a batch is in flight, and advances the time
        due_ms = view.next_timer_ms()
        if due_ms is not None:
            self._ingest.tick(due_ms)
