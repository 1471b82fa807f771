"""One migration as it was seen from outside."""

from dataclasses import dataclass

from benchmarks.migration.measures import Window


@dataclass(frozen=True)
class Move:
    """One migration from the request to its end; `moving` leaves out starting and stopping nodes."""

    window: Window
    moving: Window
    plan_bytes: float = 0.0
    stored_bytes: int = 0
    stays: frozenset[int] = frozenset()  # tasks
