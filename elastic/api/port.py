"""What the API needs of a job: the part of `elastic.Job` that it serves."""

from collections.abc import Sequence
from typing import Any, Protocol

from elastic.control import Autoscaler, JournalPage, Load, Migration
from elastic.results import Description
from elastic.runtime.status import JobStatus
from migration import Ownership, Plan, Workload


class ServedJob(Protocol):
    """A running job; safe to use from many threads. Says nothing of Spark, so that a test can do without it."""

    name: str
    pipeline: Description

    @property
    def stream(self) -> Any:
        """Spark's query: the API reads `lastProgress`, and nothing if there is none."""
        ...

    @property
    def migration(self) -> Migration | None: ...

    @property
    def autoscaler(self) -> Autoscaler | None: ...

    def status(self) -> JobStatus: ...

    def batches(self) -> tuple[int, int]:
        """The newest that counts, and the newest whose results are visible; asked for 20 times a second."""
        ...

    def assignment(self) -> Ownership: ...

    def workload(self) -> Workload: ...

    def load(self, seconds: float = ...) -> Load: ...

    def journal_page(self, limit: int, before: int | None = ...) -> JournalPage: ...

    def plan(
        self, nodes: int | None = ..., *, add: int | None = ..., remove: Sequence[str] = ..., **how: Any
    ) -> Plan: ...

    def scale(
        self, nodes: int | None = ..., *, add: int | None = ..., remove: Sequence[str] = ..., **how: Any
    ) -> Migration: ...

    def rebalance(self, **how: Any) -> Migration: ...
