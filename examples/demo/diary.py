"""What happened during a demo, and when."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from examples.frequent_patterns.board import Change


class Episode(NamedTuple):
    """Something that went on between two moments, in seconds since 1970, and what is worth saying about it."""

    kind: str  # warming, steady, scaling or loss
    title: str
    began: float
    ended: float
    said: str = ""


class Owned(NamedTuple):
    """Who owned every task from a moment on."""

    moment: float
    owners: tuple[str, ...]


@dataclass
class Diary:
    """Written while the job runs; batch b of `changes` could be read at `shown[b]`, and its texts came at `came(b)`."""

    every: float  # seconds between two batches
    began: float = 0.0  # when the texts of batch 0 came
    changes: list[Change] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)

    def note(self, change: Change) -> None:
        """A batch of results; called by the job."""
        self.shown.append(time.time())
        self.changes.append(change)

    def note_owners(self, owners: tuple[str, ...]) -> None:
        if not self.owned or self.owned[-1].owners != owners:
            self.owned.append(Owned(time.time(), owners))

    def came(self, batch: int) -> float:
        return self.began + batch * self.every

    @property
    def behind(self) -> float:
        """Seconds since the oldest texts came whose results are not there yet; below zero if none are waiting."""
        return time.time() - self.came(len(self.shown))
