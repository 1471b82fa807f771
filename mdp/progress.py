"""What a projection reports while it runs."""

from typing import NamedTuple


class Notice(NamedTuple):
    """A decision worth a line: what was chosen, and why."""

    text: str


class SweepProgress(NamedTuple):
    """So many blocks of a sweep are done. `error` is what the sweep before proved, a share of all state, or None."""

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
    """The default of callers that do not want to know."""
