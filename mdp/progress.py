"""Progress reports of a projection."""

from typing import NamedTuple


class Notice(NamedTuple):
    """A decision worth a line: what was chosen, and why."""

    text: str


class SweepProgress(NamedTuple):
    """`done` blocks of a sweep are done. `error` is the bound that the last sweep proved, in shares of all state."""

    sweep: int
    done: int
    blocks: int
    error: float | None
    goal: float
    seconds: float


class TrainingProgress(NamedTuple):
    """A round is done. `moved` is the share of all state that a migration moves with two steps of foresight."""

    round: int
    rounds: int
    moved: float
    seconds: float


def ignore_progress(_progress: object) -> None:
    """Ignore all reports; the default."""
