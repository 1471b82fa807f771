"""The port between a job and the engine that brings its batches."""

from contextlib import AbstractContextManager
from typing import Protocol


class Stream(Protocol):
    """A query that calls the job's ingest with every batch. Any thread may call it."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """End the query for good; the batch in flight is waited for, or interrupted and sent again in the next life."""
        ...

    def ending(self) -> AbstractContextManager[None]:
        """Expect the query to end with any error for the time of the block, and never start it again."""
        ...

    def interrupted(self) -> AbstractContextManager[None]:
        """End the query, and start another one from its checkpoint at the end of the block."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the query, if it should not have ended."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the query has ended without an error because its source has no more batches."""
        ...

    def process_all_available(self) -> None:
        """Wait until everything that the source has now is ingested."""
        ...

    def raise_failure(self) -> None:
        """Raise what ended the query, unless it was stopped."""
        ...
