"""What a test is made of: batches, and what happens between them."""

from dataclasses import dataclass
from typing import Any

from elastic.errors import ElasticError


@dataclass(frozen=True)
class Batch:
    """Rows that come together, and when. Without a time, a second after the batch before.

    `next_watermark_ms` is the watermark after its rows; without one it follows the tester's watermark, if it has any.
    """

    rows: Any = ()
    timestamp_ms: int | None = None
    next_watermark_ms: int | None = None


@dataclass(frozen=True)
class Scale:
    """From here on there are that many nodes: states move through their stored form, as few as possible."""

    nodes: int


@dataclass(frozen=True)
class Crash:
    """The node loses all its states; they come back from the last snapshot and the logged rows since."""

    node: str


class NotReplayable(ElasticError):
    """An operator gave other rows when a batch was replayed: after a crash its results would be wrong."""

    def __init__(self, operator: str, task: int, batch: int, before: str, now: str) -> None:
        self.operator = operator
        self.task = task
        self.batch = batch
        self.before = before
        self.now = now
        super().__init__(
            f"operator {operator!r} gave other rows when batch {batch} was replayed on task {task}: first {before}, "
            f"then {now}. Take time and randomness from the context, and keep all that changes in the state."
        )
