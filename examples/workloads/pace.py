"""The rate of a stream, and the passing of its event time."""

from dataclasses import dataclass
from typing import Self

from elastic.errors import InvalidSetting

_SECOND_MS = 1_000


@dataclass(frozen=True)
class Pace:
    """Batches of equal size, in intervals of equal length, and phases of some intervals, in which nothing drifts.

    Event time begins at 0, and batch b covers `every_ms` milliseconds from b * `every_ms` on.
    """

    rows_per_batch: int
    every_ms: int
    batches_per_interval: int
    intervals_per_phase: int = 1

    def __post_init__(self) -> None:
        for name in ("rows_per_batch", "every_ms", "batches_per_interval", "intervals_per_phase"):
            if getattr(self, name) < 1:
                raise InvalidSetting(name, getattr(self, name), "give a number >= 1")

    @classmethod
    def from_rate(
        cls, rows_per_second: int, every_ms: int, interval_seconds: float, intervals_per_phase: int = 1
    ) -> Self:
        """Round intervals up to whole batches."""
        batches = max(1, -(-round(interval_seconds * _SECOND_MS) // every_ms))
        return cls(max(1, rows_per_second * every_ms // _SECOND_MS), every_ms, batches, intervals_per_phase)

    @property
    def interval_ms(self) -> int:
        return self.every_ms * self.batches_per_interval

    def interval_of(self, batch: int) -> int:
        return batch // self.batches_per_interval

    def phase_of(self, batch: int) -> int:
        return self.interval_of(batch) // self.intervals_per_phase

    def batches_of(self, interval: int) -> range:
        """Return the numbers of the batches of an interval."""
        return range(interval * self.batches_per_interval, (interval + 1) * self.batches_per_interval)
