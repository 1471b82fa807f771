"""The interface of an application to the harness."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from elastic import Input, Job
from elastic.operators import Stage
from examples.workloads import Pace

Rows: TypeAlias = pa.Table | Mapping[str, pa.Table]  # of the only input, or of each input by its name


def concat(batches: Sequence[Rows]) -> Rows:
    """Return the rows of several batches."""
    first = batches[0]
    if isinstance(first, pa.Table):
        return pa.concat_tables(batches)
    return {name: pa.concat_tables([batch[name] for batch in batches]) for name in first}


def count_rows(rows: Rows) -> int:
    return sum(table.num_rows for table in rows.values()) if isinstance(rows, Mapping) else rows.num_rows


class WindowCheck(NamedTuple):
    """The comparison of one window: how many results were compared, and how they differ; None if they do not."""

    results: int
    difference: str | None = None


class Auditor(Protocol):
    """Compares the results of a job with a batch computation, window by window, in order."""

    def check(self, window: int, rows: Rows, results: pa.Table) -> WindowCheck:
        """Compare one window.

        `rows` are all rows of the window; `results` are what the job emitted since the previous check, which may
        include results of rows after the window.
        """
        ...


class Application(Protocol):
    """Stages over streams of numbered batches; a frozen value that can be pickled."""

    @property
    def name(self) -> str: ...

    @property
    def pace(self) -> Pace: ...

    @property
    def results(self) -> pa.Schema:
        """The schema of the results."""
        ...

    @property
    def balanced(self) -> Sequence[str]:
        """The names of the stages whose keys may move; the imbalance of the first one is measured."""
        ...

    def inputs(self) -> Sequence[Input]:
        """Return the inputs, with schemas in place of rows."""
        ...

    def stages(self) -> Sequence[Stage]: ...

    def batch(self, number: int) -> Rows:
        """Return the rows of a batch; the same number always gives the same rows."""
        ...

    def keys_of(self, rows: Rows) -> pa.ChunkedArray:
        """Return the keys by which rows reach the first balanced stage."""
        ...

    def source_batch(self, results: pa.Table, known: int) -> int:
        """Return the batch whose results these are, at least one; `known` is the newest one before, -1 at first."""
        ...

    def make_auditor(self) -> Auditor: ...


def make_input(schema: pa.Schema, key: str, delay_ms: int) -> list[Input]:
    """Return the only input of an application, whose event time is the column `time`."""
    return [Input(schema=schema, key=key, event_time="time", watermark_delay=f"{delay_ms} ms")]


@dataclass(frozen=True)
class RunningStream:
    """A job on a stream of numbered batches, and when each arrived at its source, in seconds since 1970."""

    job: Job
    arrivals: Callable[[], Sequence[float]]
