"""A job on numbered texts that is audited batch by batch."""

import queue
import time
from typing import Any, Self

from pyspark.sql import SparkSession

from examples.frequent_patterns.audit import Audit, difference
from examples.frequent_patterns.board import Board, Change
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.pipeline import REPORTER
from examples.frequent_patterns.sources import numbered_texts


class WatchedJob:
    """Runs a job and shows each of its batches to an audit, in the thread that calls `look`.

    It may fall behind while the machine is busy; `finish` catches up, and compares the reporter's saved state, too.
    """

    def __init__(self, spark: SparkSession, audit: Audit, store: str, *, every: str, **settings: Any) -> None:
        self.audit = audit
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._board = Board(self._changes.put)
        self.job = patterns_job(
            numbered_texts(spark, audit.texts, audit.per_batch),
            store=store,
            mining=audit.mining,
            sink=self._board,
            trigger={"processingTime": every},
            **settings,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.job.stop()

    def look(self, seconds: float) -> None:
        """At the batches that came, for about so long; raises what ended the job if something did."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self.audit.look(self._changes.get(timeout=left))
            except queue.Empty:
                self.job.await_termination(0)

    def wait_for(self, batch: int, seconds: float) -> bool:
        """Until that batch was looked at; whether it was in time."""
        deadline = time.monotonic() + seconds
        while self.audit.batches <= batch and time.monotonic() < deadline:
            self.look(0.05)
        return self.audit.batches > batch

    def finish(self) -> None:
        """Look at what is left after the job was stopped, and at what its reporter has saved."""
        while not self._changes.empty():
            self.audit.look(self._changes.get())
        status = self.job.status()
        if self.audit.batches != status.published_batch + 1:
            self.audit.wrong.append(f"{status.published_batch + 1} batches were applied, {self.audit.batches} reported")
        saved = {row["pattern"]: row["texts"] for row in self.job.state_table(REPORTER).collect()}
        if saved != self._board.last.patterns:
            self.audit.wrong.append(f"the saved state differs: {difference(saved, self._board.last.patterns)}")

    @property
    def is_right(self) -> bool:
        return self.audit.batches > 0 and not self.audit.wrong

    def __str__(self) -> str:
        patterns = len(self._board.last.patterns)
        return f"{self.audit.batches} batches, {patterns} patterns, {len(self.audit.wrong)} wrong"
