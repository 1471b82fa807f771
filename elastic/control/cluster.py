"""The port: all that the control plane needs of a running job."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from migration import Ownership
from migration.live import MigrationRun


class TaskCounters(NamedTuple):
    """What a task's node has counted since the task came to it, and how large its state is."""

    rows: int
    seconds: float
    state_bytes: int
    incarnation: str = ""  # who counted; another one counts from zero


class NodeCounters(NamedTuple):
    """What one incarnation of a node says of itself."""

    incarnation: str
    busy_seconds: float  # since it started
    waiting_steps: int  # committed steps that it has not taken


class NodeStep(NamedTuple):
    """The step that a node is taking: which one, for how long, and whether that is far longer than usual."""

    text: str
    overdue: bool


class Vitals(NamedTuple):
    """How a job is at one moment; nodes that are starting, lost or being restored are missing."""

    nodes: Mapping[str, NodeCounters]
    batches_ahead: int  # committed and not applied
    batches_allowed: int  # with so many ahead the source has to wait


class Cluster(Protocol):
    """A running job; safe to use from many threads."""

    def assignment(self) -> Ownership:
        """The committed one."""
        ...

    def counters(self) -> dict[int, TaskCounters]:
        """By task, over all stages; tasks that are on their way are missing."""
        ...

    def vitals(self) -> Vitals:
        """How busy its nodes are, and how much waits for them."""
        ...

    def steps(self) -> Mapping[str, NodeStep]:
        """By node; nodes between two steps are missing."""
        ...

    def replace_node(self, node: str, why: str) -> None:
        """End the process of a node that does not answer; another one takes its place and its tasks."""
        ...

    def check_room(self, nodes: int) -> None:
        """Raise `TooFewSlots` if Spark cannot run that many nodes of this job at a time; changes nothing."""
        ...

    def add_nodes(self, nodes: Sequence[str]) -> None:
        """Start nodes without tasks and wait for them; `NoRoom` if not all come up, and then none is there."""
        ...

    def remove_node(self, node: str) -> None:
        """Let a node that has no tasks go; `NodeInUse` if it has some."""
        ...

    def begin(self, run: MigrationRun, transfer: str) -> None:
        """Begin to move tasks as the run says; returns when its first mini-migration is under way, or none may start.

        The states of a mini-migration are protected until it is done. `transfer` is how states go, one of
        `request.TRANSFERS`.
        """
        ...

    def wait(self, run: MigrationRun, seconds: float) -> bool:
        """Until the run is over, or paused between two mini-migrations; False if that takes longer."""
        ...

    def go_on(self) -> None:
        """Go on with a run that was paused, unless it is again."""
        ...

    def suspended(self) -> AbstractContextManager[None]:
        """No batch is taken in, and all that were are applied."""
        ...

    def stopped(self) -> AbstractContextManager[None]:
        """The stream is stopped, all state is saved, and no node is left; at the end all starts again.

        If the block fails, a migration that it began and that is not committed did not happen.
        """
        ...

    def start_nodes(self) -> None:
        """Start every node that has tasks, and wait for all; `NoRoom` if they do not come up."""
        ...
