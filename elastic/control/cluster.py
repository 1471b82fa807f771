"""The port: all that the control plane needs of a running job."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from elastic.core.events import MigrationRequested, RekeyRequested
from elastic.core.hand_over import MigrationView
from elastic.core.rekeying import RekeyingView
from migration import Ownership

if TYPE_CHECKING:
    from elastic.control.key_loads import StageKeyLoads
    from elastic.control.standbys import StandbyCopies


class TaskCounters(NamedTuple):
    """Counters of a task since it came to its node, and the size of its state."""

    rows: int
    seconds: float
    state_bytes: int
    incarnation: str = ""  # the process that counted; another one counts from zero


class NodeCounters(NamedTuple):
    """The counters that one incarnation of a node reports of itself."""

    incarnation: str
    busy_seconds: float  # since it started
    pending_steps: int  # committed steps that it has not taken


class NodeStep(NamedTuple):
    """The step that a node is taking: which one, for how long, and whether that is far longer than usual."""

    text: str
    overdue: bool


class Vitals(NamedTuple):
    """The load of a job at one moment; nodes that are starting, lost or being restored are missing."""

    nodes: Mapping[str, NodeCounters]
    pending_batches: int  # committed and not applied
    max_pending_batches: int  # at this limit the source is throttled


class Cluster(Protocol):
    """A running job; safe to use from many threads."""

    def assignment(self) -> Ownership:
        """Return the committed assignment."""
        ...

    def standbys(self) -> "StandbyCopies | None":
        """Return the copies of tasks on standbys; None if there are none, or if stages with state differ in number."""
        ...

    def has_reserves(self) -> bool:
        """Whether the job keeps standbys or spares."""
        ...

    def counters(self) -> dict[int, TaskCounters]:
        """Return counters by task, over all stages; tasks that are on their way are missing."""
        ...

    def vitals(self) -> Vitals:
        """Return how busy the nodes are, and how many batches are pending."""
        ...

    def steps(self) -> Mapping[str, NodeStep]:
        """Return the running step by node; nodes between two steps are missing."""
        ...

    def replace_node(self, node: str, reason: str) -> None:
        """End the process of a node that does not answer; another one takes its place and its tasks."""
        ...

    def check_room(self, nodes: int) -> None:
        """Raise `TooFewSlots` if Spark cannot run that many nodes of this job at a time; changes nothing."""
        ...

    def add_nodes(self, nodes: Sequence[str]) -> None:
        """Start nodes without tasks and wait for them; `NodeStartTimeout` if not all join, and then none is kept."""
        ...

    def remove_node(self, node: str) -> None:
        """Stop a node that has no tasks; `NodeInUse` if it has some."""
        ...

    def measure_keys(self, stage: str | None) -> "StageKeyLoads":
        """Return the load of the keys of a stage; None is the only one that is grouped by table.

        Raises `KeysCannotMove` if the stage is not grouped by table, `KeysNotCounted` if the settings exclude it, and
        `KeysNotMeasured` too early.
        """
        ...

    def find_unsplit(self) -> str | None:
        """Return the first partial stage that splits no keys; None if there is none."""
        ...

    def split_keys(self, stage: str | None, splits: str) -> None:
        """Change which keys a partial stage splits; None is the only one. Raises `KeysCannotBeSplit`."""
        ...

    def begin(self, request: MigrationRequested | RekeyRequested) -> None:
        """Begin to move tasks or keys; tasks: returns when a mini-migration is in flight, or none may start."""
        ...

    def pause(self, migration: str) -> None:
        """Pause after what is in flight."""
        ...

    def resume(self, migration: str) -> None:
        """Continue. Returns when that is in effect: until then `wait` would return at once, again and again."""
        ...

    def cancel(self, migration: str) -> None:
        """Skip the moves that have not begun. Returns when that is in effect, like `resume`."""
        ...

    def note(self, migration: str, line: str) -> None:
        """Add a line to the story of a migration."""
        ...

    def migration(self, migration: str) -> MigrationView | None:
        """Return a migration of tasks as it is now; None if it has not begun, or another one has."""
        ...

    def rekeying(self, migration: str) -> RekeyingView | None:
        """Return a migration of keys as it is now; None as for `migration`."""
        ...

    def wait(self, migration: str, seconds: float) -> bool:
        """Wait until the migration is over, or paused with nothing in flight; False if that takes longer."""
        ...

    def suspended(self) -> AbstractContextManager[None]:
        """Ingest no batch for the time of the block; all that were ingested are applied before it."""
        ...

    def stopped(self) -> AbstractContextManager[None]:
        """Stop the stream, save all state and stop all nodes for the time of the block; then start all again.

        If the block fails, a migration that it began and that is not committed did not happen.
        """
        ...

    def start_nodes(self) -> None:
        """Start every node that has tasks, and wait for all; `NodeStartTimeout` if they do not join."""
        ...
