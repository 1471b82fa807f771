"""The record of a demo: results, steps and ownership over time."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from examples.frequent_patterns.board import Change


class Period(NamedTuple):
    """A step of the demo: its start and end in seconds since 1970, and a summary."""

    kind: str  # warming, steady, scaling, loss or switch
    title: str
    began: float
    ended: float
    summary: str = ""


class Ownership(NamedTuple):
    """The owner of every task from a moment on, and its standbys; no `standbys` if no task has any."""

    moment: float
    owners: tuple[str, ...]
    standbys: tuple[tuple[str, ...], ...] = ()


@dataclass
class Timeline:
    """Recorded while the job runs: batch b of `changes` arrived at `arrival(b)` and was published at `published[b]`."""

    every: float  # seconds between two batches
    began: float = 0.0  # arrival of batch 0
    changes: list[Change] = field(default_factory=list)
    published: list[float] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    owned: list[Ownership] = field(default_factory=list)

    def note(self, change: Change) -> None:
        """Record a batch of results; the sink calls it."""
        self.published.append(time.time())
        self.changes.append(change)

    def note_owners(self, owners: tuple[str, ...], standbys: tuple[tuple[str, ...], ...] = ()) -> None:
        if not self.owned or self.owned[-1][1:] != (owners, standbys):
            self.owned.append(Ownership(time.time(), owners, standbys))

    @property
    def has_standbys(self) -> bool:
        return any(owned.standbys for owned in self.owned)

    def arrival(self, batch: int) -> float:
        return self.began + batch * self.every

    @property
    def behind(self) -> float:
        """Seconds since the arrival of the oldest unpublished batch; negative if there is none."""
        return time.time() - self.arrival(len(self.published))
