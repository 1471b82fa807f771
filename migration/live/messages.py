"""What a migration hears and what it wants done. Events are past tense, commands imperative; all are safe to repeat."""

from dataclasses import dataclass
from typing import NamedTuple

from migration.model import Move, Ownership


class HandOver(NamedTuple):
    """Tasks that go together from one node to another."""

    source: str
    target: str
    tasks: tuple[int, ...]
    size: float

    @classmethod
    def of(cls, source: str, target: str, moves: list[Move]) -> "HandOver":
        return cls(source, target, tuple(move.task for move in moves), sum(move.size for move in moves))

    def __str__(self) -> str:
        return f"{len(self.tasks)} tasks: {self.source} -> {self.target} ({self.size:g})"


@dataclass(frozen=True)
class StateReleased:
    """The source has stopped these tasks and stored or offers their state, `stored_bytes` in all."""

    source: str
    tasks: tuple[int, ...]
    stored_bytes: int


@dataclass(frozen=True)
class StateInstalled:
    """The target has the state of these tasks and works on them; `direct_bytes` of it came straight from the source."""

    target: str
    tasks: tuple[int, ...]
    direct_bytes: int = 0


@dataclass(frozen=True)
class AssignmentCommitted:
    """The assignment after the hand-overs of a mini-migration counts."""

    assignment: Ownership


@dataclass(frozen=True)
class NodeLost:
    """A node's process is gone; another incarnation takes its name and its tasks."""

    node: str


@dataclass(frozen=True)
class ReleaseState:
    """Let the source stop these tasks at the end of its batch, store or offer their state, and keep it."""

    hand_over: HandOver


@dataclass(frozen=True)
class InstallState:
    """Let the target take these tasks over; from what was released, else from the last snapshot and the log."""

    hand_over: HandOver


@dataclass(frozen=True)
class CommitAssignment:
    """Make the assignment after a mini-migration count."""

    assignment: Ownership


@dataclass(frozen=True)
class ForgetState:
    """Let the source forget what it keeps of these tasks."""

    hand_over: HandOver


Command = ReleaseState | InstallState | CommitAssignment | ForgetState
LiveEvent = StateReleased | StateInstalled | AssignmentCommitted | NodeLost
