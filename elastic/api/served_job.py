"""The port through which the API uses a job."""

from collections.abc import Sequence
from typing import Any, Protocol

from elastic.control import Autoscaler, JournalPage, LevelPlans, Load, Migration
from elastic.job.keys import KeyStatus, KeyTableStatus
from elastic.job.status import JobStatus
from elastic.operators.graph import JobGraph
from elastic.results import Description
from migration import Ownership, Plan, Workload


class ServedJob(Protocol):
    """The part of `elastic.Job` that the API uses. Thread-safe.

    A job on Spark also has `stream`, Spark's query: the API reads its `lastProgress` for the duration of triggers.
    """

    @property
    def name(self) -> str: ...

    @property
    def pipeline(self) -> Description: ...

    @property
    def migration(self) -> Migration | None: ...

    @property
    def autoscaler(self) -> Autoscaler | None: ...

    def graph(self) -> JobGraph: ...

    def status(self) -> JobStatus: ...

    def batches(self) -> tuple[int, int]:
        """Return the newest committed and the newest published batch; called 20 times a second."""
        ...

    def assignment(self) -> Ownership: ...

    def workload(self) -> Workload: ...

    def keys(self, top: int = ..., stage: str | None = ...) -> list[KeyStatus]: ...

    def key_tables(self) -> list[KeyTableStatus]: ...

    def load(self, seconds: float = ...) -> Load: ...

    def journal_page(self, limit: int, before: int | None = ...) -> JournalPage: ...

    def plan(
        self, nodes: int | None = ..., *, add: int | None = ..., remove: Sequence[str] = ..., **options: Any
    ) -> Plan: ...

    def scale(
        self, nodes: int | None = ..., *, add: int | None = ..., remove: Sequence[str] = ..., **options: Any
    ) -> Migration: ...

    def plan_levels(self, **options: Any) -> LevelPlans: ...

    def rebalance(self, level: str = ..., **options: Any) -> Migration: ...

    def split(self, split: str = ..., stage: str | None = ...) -> None: ...
