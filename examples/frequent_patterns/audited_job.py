"""A job on numbered texts whose every batch is verified."""

import queue
import time
from typing import Any, Self

from pyspark.sql import SparkSession

from examples.frequent_patterns.audit import Audit, difference
from examples.frequent_patterns.board import Board, Change
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.pipeline import REPORTER
from examples.frequent_patterns.sources import stream_texts


class AuditedJob:
    """Runs a job and passes each of its batches to an audit, in the thread that calls `check_for`.

    The audit may lag behind on a busy machine; `finish` catches up, and also compares the reporter's stored state.
    """

    def __init__(self, spark: SparkSession, audit: Audit, store: str, *, every: str, **settings: Any) -> None:
        self.audit = audit
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._board = Board(self._changes.put)
        self.job = patterns_job(
            stream_texts(spark, audit.texts, audit.per_batch),
            store=store,
            mining=audit.mining,
            sink=self._board,
            trigger={"processingTime": every},
            empty_batches="off",  # the audit knows the texts of every batch
            **settings,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.job.stop()

    def check_for(self, seconds: float) -> None:
        """Check arriving batches for about this long; raises the error that ended the job, if any."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self.audit.check(self._changes.get(timeout=left))
            except queue.Empty:
                self.job.await_termination(0)

    def wait_for(self, batch: int, seconds: float) -> bool:
        """Wait until that batch is checked; return False after the timeout."""
        deadline = time.monotonic() + seconds
        while self.audit.batches <= batch and time.monotonic() < deadline:
            self.check_for(0.05)
        return self.audit.batches > batch

    def finish(self) -> None:
        """Check the remaining batches after the job has stopped, and the stored state of its reporter."""
        while not self._changes.empty():
            self.audit.check(self._changes.get())
        status = self.job.status()
        if self.audit.batches != status.published_batch + 1:
            self.audit.wrong.append(
                f"{status.published_batch + 1} batches were published, but {self.audit.batches} reported"
            )
        saved = {row["pattern"]: row["texts"] for row in self.job.state_table(REPORTER).collect()}
        if saved != self._board.last.patterns:
            self.audit.wrong.append(f"the stored state differs: {difference(saved, self._board.last.patterns)}")

    @property
    def is_right(self) -> bool:
        return self.audit.batches > 0 and not self.audit.wrong

    def __str__(self) -> str:
        patterns = len(self._board.last.patterns)
        return f"{self.audit.batches} batches, {patterns} patterns, {len(self.audit.wrong)} wrong"
