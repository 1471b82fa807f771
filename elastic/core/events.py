"""Events that the coordinator handles: requests, answers of the store, losses and the clock.

Reports of nodes (see `messages`) are events too. Each event is handled once, in the order of the driver's queue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from elastic.core.ids import Batch
from elastic.core.messages import NodeReport
from elastic.routing import KeyTargets, Routing
from migration import Move, Ownership
from storage.state import BatchTime, LogRef, Manifest, SourceBatch


@dataclass(frozen=True)
class NodeLost:
    """An incarnation ended, was silent for too long, or never joined; `failed` by an error of its own."""

    node: str
    incarnation: str
    reason: str
    failed: bool = False


@dataclass(frozen=True)
class StartRequested:
    """Start one more node; it gets units when they are moved to it."""

    node: str


@dataclass(frozen=True)
class StopRequested:
    """Stop a node; one that owns units stays."""

    node: str


@dataclass(frozen=True)
class SparesChanged:
    """The number of processes that are warm and wait for the name of a node has changed."""

    ready: int


@dataclass(frozen=True)
class ReplaceRequested:
    """Treat a node as lost: another incarnation takes its units."""

    node: str
    reason: str


@dataclass(frozen=True)
class StopAllRequested:
    """Stop every node, and abandon a migration unless its commit is under way: then nothing stops."""


@dataclass(frozen=True)
class StartOwnersRequested:
    """Start every node that owns units and is not there."""


@dataclass(frozen=True)
class MigrationRequested:
    """Move the tasks of each mini-migration, in order. The id is unique within the life of a driver.

    With `direct` the sources offer their states to the targets and store them behind that. With `warm` the targets
    follow the sources before they take over, and no state is stored for it.
    """

    id: str
    current: Ownership
    target: Ownership
    mini_migrations: tuple[tuple[Move, ...], ...]
    direct: bool = False
    paused: bool = False  # the caller paused it before it began
    warm: bool = False


@dataclass(frozen=True)
class RekeyRequested:
    """Move keys to other units, one portion with each batch. The id is as that of a migration."""

    id: str
    portions: tuple[KeyTargets, ...]
    sizes: tuple[float, ...]  # of the state that moves with each portion, as planned
    paused: bool = False  # the caller paused it before it began


@dataclass(frozen=True)
class SplitRequested:
    """From now on split these keys of a partial stage; no state moves, because any task may hold partials of a key."""

    stage: int
    splits: str  # one of `elastic.routing.SPLITS`


@dataclass(frozen=True)
class PauseRequested:
    """Pause the migration after the mini-migration in flight, or the rekeying after the portion in flight."""

    change: str


@dataclass(frozen=True)
class ResumeRequested:
    """Continue the migration or the rekeying."""

    change: str


@dataclass(frozen=True)
class CancelRequested:
    """Leave out what the migration or the rekeying has not begun."""

    change: str


@dataclass(frozen=True)
class ChangeNoted:
    """Add a line to the story of the migration or the rekeying."""

    change: str
    line: str


@dataclass(frozen=True)
class MigrationLeaseOpened:
    """States that a mini-migration moves are protected by this lease until it is closed."""

    lease: str


@dataclass(frozen=True)
class BatchLogged:
    """All source partitions of a batch are durable in the log; without a `source` batch it is a tick of the driver."""

    batch: Batch
    logs: tuple[LogRef, ...]
    time: BatchTime
    source: SourceBatch | None = None
    groupings_epoch: int = 0  # of the groupings that the senders used
    seconds: Mapping[str, float] = field(default_factory=dict)  # that its rows will take, by node, if that is estimated


@dataclass(frozen=True)
class RoundCommitted:
    """A round of a batch is committed."""

    manifest: Manifest
    batch: Batch
    round: int
    logs: tuple[LogRef, ...]
    complete: bool
    time: BatchTime
    routing: Routing | None = None  # if groupings were committed with the round


@dataclass(frozen=True)
class EpochCommitted:
    """A new epoch is committed: nodes that joined may be given units."""

    manifest: Manifest


@dataclass(frozen=True)
class AssignmentCommitted:
    """A new assignment is committed, in a new epoch."""

    manifest: Manifest
    routing: Routing
    assignment: Ownership


@dataclass(frozen=True)
class SplitCommitted:
    """The choice of the keys that a partial stage splits is committed, in a new epoch."""

    manifest: Manifest
    routing: Routing


@dataclass(frozen=True)
class ResultsPublished:
    """Readers can see the results of a batch."""

    batch: Batch


@dataclass(frozen=True)
class SnapshotDue:
    """It is time to save the state that changed."""


@dataclass(frozen=True)
class SnapshotLeaseOpened:
    """States that the snapshot saves are protected by this lease until it is closed."""

    lease: str


@dataclass(frozen=True)
class StatesCommitted:
    """New states are committed, and the log before them is no longer needed."""

    manifest: Manifest
    lease: str


@dataclass(frozen=True)
class SnapshotFailed:
    """The store was unavailable; nothing changed, and the next snapshot tries again."""

    reason: str


Event = (
    NodeReport
    | NodeLost
    | StartRequested
    | StopRequested
    | SparesChanged
    | ReplaceRequested
    | StopAllRequested
    | StartOwnersRequested
    | MigrationRequested
    | RekeyRequested
    | SplitRequested
    | PauseRequested
    | ResumeRequested
    | CancelRequested
    | ChangeNoted
    | MigrationLeaseOpened
    | BatchLogged
    | RoundCommitted
    | EpochCommitted
    | AssignmentCommitted
    | SplitCommitted
    | ResultsPublished
    | SnapshotDue
    | SnapshotLeaseOpened
    | StatesCommitted
    | SnapshotFailed
)
