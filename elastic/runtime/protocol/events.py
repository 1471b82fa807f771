"""What happened, as the coordinator hears it: reports of nodes (see `messages`), answers of the store, the clock."""

from dataclasses import dataclass

from elastic.routing import Routing
from migration import Ownership
from migration.live import HandOver
from storage.state import BatchTime, LogRef, Manifest, SourceBatch


@dataclass(frozen=True)
class NodeLost:
    """An incarnation is gone, was silent for too long, or never came up."""

    node: str
    incarnation: str
    reason: str


@dataclass(frozen=True)
class NodeWanted:
    """One more node is to be started; it gets units when they are moved to it."""

    node: str


@dataclass(frozen=True)
class NodeUnwanted:
    """A node that has no units is to leave."""

    node: str


@dataclass(frozen=True)
class AllNodesUnwanted:
    """Every node is to leave, whatever it has; units are where the committed assignment says."""


@dataclass(frozen=True)
class OwnersWanted:
    """Every node that owns units, and is not there, is to be started."""


@dataclass(frozen=True)
class MoveAsked:
    """A hand-over begins; the source stores states under the lease, or offers them first if `direct`."""

    hand_over: HandOver
    lease: str
    direct: bool = False


@dataclass(frozen=True)
class MoveLeaseOpened:
    """States that a mini-migration moves are safe under this lease until it is closed."""

    lease: str


@dataclass(frozen=True)
class BatchLogged:
    """All source partitions of a batch are durable in the log; without a `source` batch it is a tick of the driver."""

    batch: int
    logs: tuple[LogRef, ...]
    time: BatchTime
    source: SourceBatch | None = None


@dataclass(frozen=True)
class RoundCommitted:
    """A round counts from now on."""

    manifest: Manifest
    batch: int
    round: int
    logs: tuple[LogRef, ...]
    complete: bool
    time: BatchTime


@dataclass(frozen=True)
class EpochCommitted:
    """A new epoch counts: whoever joined may be given units."""

    manifest: Manifest


@dataclass(frozen=True)
class RoutingCommitted:
    """A new assignment counts, in a new epoch."""

    manifest: Manifest
    routing: Routing
    assignment: Ownership


@dataclass(frozen=True)
class Published:
    """Readers can see the results of a batch."""

    batch: int


@dataclass(frozen=True)
class SnapshotDue:
    """It is time to save what changed."""


@dataclass(frozen=True)
class LeaseOpened:
    """States saved under this lease are safe until it is closed."""

    lease: str


@dataclass(frozen=True)
class StatesCommitted:
    """New states count, and the log before them is no longer needed."""

    manifest: Manifest
    lease: str


@dataclass(frozen=True)
class SnapshotFailed:
    """The store did not take part; nothing changed, and the next snapshot tries again."""

    reason: str
