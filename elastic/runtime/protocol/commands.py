"""What the coordinator wants done. Each is safe to repeat; each that has an answer is answered by an event."""

from dataclasses import dataclass

from elastic.errors import PoisonedStep
from elastic.results import ResultRef
from elastic.runtime.protocol.messages import Failed, Message
from migration import Ownership
from migration.live.messages import LiveEvent
from storage.state import BatchTime, LogRef, SourceBatch, StateRef


@dataclass(frozen=True)
class StartNode:
    """Start a node under this name, in the place of any other incarnation; answered by `Joined` or `NodeLost`."""

    node: str
    incarnation: str


@dataclass(frozen=True)
class StopNode:
    """Let a node that has no units leave."""

    node: str
    incarnation: str


@dataclass(frozen=True)
class Send:
    """Tell a node, again and again until it has heard or is lost."""

    node: str
    incarnation: str
    message: Message


@dataclass(frozen=True)
class CommitRound:
    """Make a round of a batch count; answered by `RoundCommitted`."""

    batch: int
    round: int
    logs: tuple[LogRef, ...]
    complete: bool
    time: BatchTime
    source: SourceBatch | None  # comes with round 0, as the time does
    published: int  # the newest batch whose results are published


@dataclass(frozen=True)
class CommitEpoch:
    """Answered by `EpochCommitted`."""

    reason: str


@dataclass(frozen=True)
class CommitRouting:
    """Make an assignment count, in a new epoch; answered by `RoutingCommitted`."""

    assignment: Ownership


@dataclass(frozen=True)
class Tell:
    """Something that concerns the migration under way, if there is one."""

    event: LiveEvent


@dataclass(frozen=True)
class PublishResults:
    """Let readers see a batch; answered by `Published`."""

    batch: int
    results: tuple[ResultRef, ...]
    timestamp_ms: int


@dataclass(frozen=True)
class OpenLease:
    """Answered by `LeaseOpened` or `SnapshotFailed`."""


@dataclass(frozen=True)
class CommitStates:
    """Make states count and close their lease; answered by `StatesCommitted` or `SnapshotFailed`."""

    lease: str
    states: tuple[StateRef, ...]
    unchanged: dict[int, int]  # slot -> batch as of which its known state is still right
    published: int  # the newest batch whose results are published; no state includes a later one


@dataclass(frozen=True)
class OpenMoveLease:
    """Open a lease for the states of one mini-migration; answered by `MoveLeaseOpened`."""


@dataclass(frozen=True)
class CloseMoveLease:
    """Nobody needs the states of that mini-migration any more; has no answer."""

    lease: str


@dataclass(frozen=True)
class FailJob:
    """Stop the stream with this error: one that a node reported, or one that the coordinator found."""

    failure: Failed | PoisonedStep


Command = (
    StartNode
    | StopNode
    | Send
    | CommitRound
    | CommitEpoch
    | CommitRouting
    | Tell
    | PublishResults
    | OpenLease
    | CommitStates
    | OpenMoveLease
    | CloseMoveLease
    | FailJob
)
