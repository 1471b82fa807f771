"""What the harness needs of an application."""

from typing import NamedTuple, Protocol

import pyarrow as pa

from elastic.operators import Stage
from examples.workloads import Pace


class WindowCheck(NamedTuple):
    """The comparison of one window: how many results were compared, and how they differ; None if they do not."""

    results: int
    difference: str | None = None


class Auditor(Protocol):
    """Compares the results of a job with a batch computation, window by window, in order."""

    def check(self, window: int, rows: pa.Table, results: pa.Table) -> WindowCheck:
        """Compare one window.

        `rows` are all rows of the window; `results` are what the job emitted since the previous check, which may
        include results of rows after the window.
        """
        ...


class Application(Protocol):
    """A stage over a stream of numbered batches; a frozen value that can be pickled."""

    @property
    def name(self) -> str: ...

    @property
    def pace(self) -> Pace: ...

    @property
    def key(self) -> str: ...

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows, with the event time in the column `time`."""
        ...

    @property
    def watermark_delay_ms(self) -> int: ...

    def stage(self) -> Stage: ...

    def batch(self, number: int) -> pa.Table:
        """Return the rows of a batch; the same number always gives the same rows."""
        ...

    def source_batch(self, results: pa.Table, known: int) -> int:
        """Return the batch whose results these are, at least one; `known` is the newest one before, -1 at first."""
        ...

    def make_auditor(self) -> Auditor: ...
