"""Commands of the coordinator. Each is safe to repeat; the answer to a command is an event."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from elastic.core.ids import Batch, UnitId
from elastic.core.messages import NodeCommand, NodeFailed
from elastic.errors import PoisonedStep
from elastic.results import ResultRef
from elastic.routing import Grouping, KeyOrders
from migration import Ownership
from storage.state import BatchTime, LogRef, SourceBatch, StateRef


@dataclass(frozen=True)
class StartNode:
    """Start a node under this name, in the place of any other incarnation; answered by `NodeJoined` or `NodeLost`."""

    node: str
    incarnation: str


@dataclass(frozen=True)
class StopNode:
    """Let a node that has no units leave."""

    node: str
    incarnation: str


@dataclass(frozen=True)
class Send:
    """Send a message to a node, again and again until the node acknowledges it or is lost."""

    node: str
    incarnation: str
    message: NodeCommand


class Regrouping(NamedTuple):
    """New groupings by stage, and the orders to part with keys, by the number of the unit that the keys leave.

    The orders are logged as the input of the round, and the groupings are committed with it, in a new epoch.
    """

    groupings: tuple[Grouping, ...]
    orders: Mapping[int, KeyOrders]


@dataclass(frozen=True)
class CommitRound:
    """Commit a round of a batch; answered by `RoundCommitted`."""

    batch: Batch
    round: int
    logs: tuple[LogRef, ...]
    complete: bool
    time: BatchTime
    source: SourceBatch | None  # given with round 0, as the time is
    published: Batch  # the newest batch whose results are published
    regrouping: Regrouping | None = None  # commit it with the round


@dataclass(frozen=True)
class CommitEpoch:
    """Commit a new epoch; answered by `EpochCommitted`."""

    reason: str


@dataclass(frozen=True)
class CommitAssignment:
    """Commit an assignment and the standbys of every task, in a new epoch; answered by `AssignmentCommitted`."""

    assignment: Ownership
    standbys: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class CommitSplit:
    """Commit which keys a partial stage splits, in a new epoch; answered by `SplitCommitted`."""

    stage: int
    splits: str


@dataclass(frozen=True)
class PublishResults:
    """Publish the results of a batch; answered by `ResultsPublished`."""

    batch: Batch
    results: tuple[ResultRef, ...]
    timestamp_ms: int


@dataclass(frozen=True)
class OpenSnapshotLease:
    """Answered by `SnapshotLeaseOpened` or `SnapshotFailed`."""


@dataclass(frozen=True)
class CommitStates:
    """Commit states and close their lease; answered by `StatesCommitted` or `SnapshotFailed`."""

    lease: str
    states: tuple[StateRef, ...]
    unchanged: Mapping[UnitId, Batch]  # the batch up to which the known state of a unit is still right
    published: Batch  # the newest batch whose results are published; no state includes a later one


@dataclass(frozen=True)
class OpenMigrationLease:
    """Open a lease for the states of one mini-migration; answered by `MigrationLeaseOpened`."""


@dataclass(frozen=True)
class CloseMigrationLease:
    """Close the lease of a mini-migration whose states are no longer needed; has no answer."""

    lease: str


@dataclass(frozen=True)
class FailJob:
    """Stop the stream with this error: one that a node reported, or one that the coordinator found."""

    failure: NodeFailed | PoisonedStep


Command = (
    StartNode
    | StopNode
    | Send
    | CommitRound
    | CommitEpoch
    | CommitAssignment
    | CommitSplit
    | PublishResults
    | OpenSnapshotLease
    | CommitStates
    | OpenMigrationLease
    | CloseMigrationLease
    | FailJob
)
