"""The items of a test scenario: batches, and what happens between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elastic.errors import ElasticError


@dataclass(frozen=True)
class InputBatch:
    """The rows of a batch, with its time; by default one second after the previous batch.

    `rows` of a tester with several inputs are a mapping from their names to rows.

    `next_watermark_ms` is the watermark after its rows; by default it follows the tester's watermark, if there is one.
    """

    rows: Any = ()
    timestamp_ms: int | None = None
    next_watermark_ms: int | None = None


@dataclass(frozen=True)
class Scale:
    """Scale to this many nodes: state moves in its stored form, as little as possible."""

    nodes: int


@dataclass(frozen=True)
class Rekey:
    """Move keys of a stage, by default the last one: to the guests of a task, or with None to the task of their hash.

    The stage has `grouping="table"`. State and timers of the keys move in their stored form, between two batches.
    """

    tasks: Mapping[Any, int | None]
    stage: str | None = None


@dataclass(frozen=True)
class Crash:
    """The node loses its state; the tester restores it from the last snapshot and what was logged since."""

    node: str


class NotReplayable(ElasticError):
    """An operator emitted other rows in a replay: after a crash its results would be wrong."""

    def __init__(self, operator: str, task: int, batch: int, before: str, now: str) -> None:
        self.operator = operator
        self.task = task
        self.batch = batch
        self.before = before
        self.now = now
        super().__init__(
            f"operator {operator!r} is not deterministic: in batch {batch} of task {task} it emitted {before}, and "
            f"{now} in the replay. Take time and random numbers from the context, and keep all else in the state."
        )
