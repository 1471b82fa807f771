"""An idle stream: while no rows come, the driver commits an empty batch when time has to pass or keys have to move."""

from elastic.core.view import JobView
from elastic.driver.driver import Driver
from elastic.ingest.batch_ingest import BatchIngest


class Ticker:
    """Polled every heartbeat, so processing-time timers fire, and keys move, at most two heartbeats late without rows.

    Heartbeats say when the next timers of a node are due. Event-time timers of a stage that lags behind its inputs need
    a batch each until it has caught up, and an input may become idle. A tick is a batch without rows and without a
    batch of the source, so Spark's batch numbers and those of the job differ from the first tick on.
    """

    def __init__(self, driver: Driver, ingest: BatchIngest, *, is_on: bool = True) -> None:
        self._is_on = is_on
        self._driver = driver
        self._ingest = ingest
        self._waiting_since: int | None = None  # the newest batch when a rekeying was found to wait for another

    def poll(self) -> None:
        view = self._driver.view
        if not self._is_on or not view.is_idle:
            return  # a batch in flight advances the time
        wanted = (0 if self._must_move_keys(view) else None, view.next_timer_ms(), self._ingest.next_tick_ms)
        due = [at_ms for at_ms in wanted if at_ms is not None]
        if due:
            self._ingest.tick(min(due))

    def _must_move_keys(self, view: JobView) -> bool:
        """Whether a rekeying has waited since the last poll, and no batch has come that could take it along."""
        waited = view.rekeying_is_due and self._waiting_since == view.newest_batch
        self._waiting_since = view.newest_batch if view.rekeying_is_due else None
        return waited
