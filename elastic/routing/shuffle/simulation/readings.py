"""Readings of paper 004: what its text leaves open, decided in three ways.

- `text`: as the paper is written.
- `rec`: the least that has to change for estimates to follow the queues.
- `best`: the best settings found; what the engine does per batch is close to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from elastic.errors import InvalidJob


@dataclass(frozen=True)
class Reading:
    """How instances measure and how the scheduler uses it; defaults are the paper's."""

    window: int = 1_024  # rows of an instance between two looks at its sketch; paper: N
    mu: float | None = 0.05  # relative change below which a sketch is stable; None: every window is reported
    by_frequency: bool = False  # cells count by their rows in that change, else all alike
    wall_clock: bool = False  # replies say when the row was done, else how long the instance has worked in total
    unseen_as_mean: bool = False  # a new key takes the mean of all rows, else nothing
    numbers_epochs: bool = False  # replies to earlier requests are dropped, else taken for current ones
    pooled: bool = False  # rows are estimated from the sketches of all instances, else of the one that takes them
    skips_idle: bool = False  # an instance that should be idle is done now, not earlier: max(C, now)
    sync_rows: int | None = None  # rows between synchronisations; None: one after every sketch

    def __post_init__(self) -> None:
        if (
            self.window < 1
            or (self.mu is not None and self.mu < 0)
            or (self.sync_rows is not None and self.sync_rows < 1)
        ):
            raise InvalidJob(
                f"window={self.window}, mu={self.mu}, sync_rows={self.sync_rows} is no reading. Use windows and "
                "sync_rows of at least one row, and a mu of at least 0."
            )


READINGS: Mapping[str, Reading] = {
    "text": Reading(),
    "rec": Reading(mu=0.1, by_frequency=True, wall_clock=True, unseen_as_mean=True, numbers_epochs=True),
    "best": Reading(
        window=256,
        mu=None,
        wall_clock=True,
        unseen_as_mean=True,
        numbers_epochs=True,
        pooled=True,
        skips_idle=True,
        sync_rows=500,
    ),
}
