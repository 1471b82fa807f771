"""Every message between the driver and its nodes. Commands are imperative, reports are in the past tense.

A message may arrive late, twice or in another order than it was sent; none is lost while both ends live, because the
sender repeats it until it is acknowledged (`elastic.wire.ReliableSender`). Commands are numbered, and a node handles
them in order (see `ordering`). A report names the *incarnation* of its node: one life of one process. The driver
accepts only the incarnation that it gave the units to, so a process that it has replaced cannot change anything.

Every message has a `cause`: the id of the event that made the driver send the command, such as "e1234". A node copies
it into its report on that command, so that a cause can be followed through the logs of all processes.
"""

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from elastic.core.ids import FIRST_EPOCH, NO_BATCH, Batch, Epoch, UnitId
from elastic.core.json_codec import Codec, derive_codec
from elastic.core.key_statistics import KeyStatistics
from elastic.core.stage_costs import NodeCosts, StageCosts
from elastic.core.statistics import RunningStep, UnitStatistics
from elastic.core.steps import Position, Step
from elastic.results import ResultRef
from elastic.routing import Routing
from storage.state import LogRef, StateRef


@dataclass(frozen=True)
class Message:
    """Base of all messages. Two messages are equal regardless of their cause."""

    cause: str = field(default="", kw_only=True, compare=False)

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = _codecs[type(self)].encode(self)
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        message: Self = _codecs[cls].decode(document)
        return message


# Commands of the driver.


class UnitHandle(NamedTuple):
    """One unit to install: its saved state (None: empty), as of batch `through`.

    The driver has the output of the unit's steps up to `reported`; the node must not report these again.
    `source` is the address of a node that offers the same state: it has it before the store does, or sooner.
    Steps at `isolated` have killed processes: the node lets a child process try them.
    A `standby` only follows the published batches. A node that follows the unit already, and is not behind its saved
    state, becomes active without loading anything.
    """

    unit: UnitId
    state: StateRef | None
    through: Batch
    reported: Position
    source: str | None = None
    isolated: tuple[Position, ...] = ()
    standby: bool = False


@dataclass(frozen=True)
class InstallUnits(Message):
    """Load these units, repeat the steps after their states, then take the steps that follow.

    `routing` holds for what these steps and the next ones emit, until an `ApplyStep` has another.
    A node that replaces a lost one is `careful`: it reports each of these steps before it takes it, and at `suspects`,
    where processes of this node died before, each unit. Standbys take the steps up to the batch that was `published`.
    """

    epoch: Epoch
    units: tuple[UnitHandle, ...]
    steps: tuple[Step, ...]
    careful: bool = False
    suspects: tuple[Position, ...] = ()
    routing: Routing | None = None  # None: as before
    published: Batch = NO_BATCH


@dataclass(frozen=True)
class ApplyStep(Message):
    """This step is committed: all units on the node take it when its turn comes.

    `routing` holds for what the steps from this one on emit. It comes with a step that new groupings were committed
    with, and after tasks have moved if nodes choose units by load. `costs` are those of all nodes, for nodes that send
    rows to a shuffled stage. Standbys take the step when its batch is published; they may take the steps up to the
    batch that was `published` last.
    """

    epoch: Epoch
    step: Step
    routing: Routing | None = None
    costs: tuple[NodeCosts, ...] | None = None  # None: as before
    published: Batch = NO_BATCH


@dataclass(frozen=True)
class FollowBatches(Message):
    """Let standbys take all steps up to the end of this batch, because no other command that says so follows soon."""

    epoch: Epoch
    published: Batch


@dataclass(frozen=True)
class TakeSnapshot(Message):
    """Save every unit that changed after the batch given for it; report the others as unchanged."""

    epoch: Epoch
    lease: str
    saved: dict[UnitId, Batch]  # the batch as of which the committed manifest has the unit's state


@dataclass(frozen=True)
class ReleaseUnits(Message):
    """Stop these units at the end of their batch, store their states under the lease, and keep them until `DropUnits`.

    With `direct`, offer the states to other nodes, report that, and store them afterwards. With `warm`, store nothing:
    another node follows the units.
    """

    epoch: Epoch
    units: tuple[UnitId, ...]
    lease: str
    direct: bool = False
    warm: bool = False


@dataclass(frozen=True)
class DropUnits(Message):
    """Drop these units: released ones that another node has installed, and standbys that are no longer wanted."""

    epoch: Epoch
    units: tuple[UnitId, ...]


@dataclass(frozen=True)
class LeaveJob(Message):
    """Finish the step under way, write its output, and end."""


# Reports of nodes.


@dataclass(frozen=True)
class NodeReport(Message):
    """Base of all reports: names the process that sent it."""

    node: str
    incarnation: str


@dataclass(frozen=True)
class NodeJoined(NodeReport):
    """A node is up and has no units yet. Nodes of one host with the same `executor` are lost together."""

    address: str
    pid: int = 0
    executor: str = ""


@dataclass(frozen=True)
class SpareReady(NodeReport):
    """A spare waits for the name of a node; repeated as its heartbeat. Its `node` is empty."""

    address: str
    pid: int = 0


@dataclass(frozen=True)
class StepApplied(NodeReport):
    """These units took a step, and its output is durable.

    `emitted` holds the records for the next round, bound for `emitted_stages`; `results` those for the sink.
    """

    position: Position
    units: tuple[UnitId, ...]
    emitted: LogRef | None = None
    emitted_stages: tuple[int, ...] = ()
    results: ResultRef | None = None
    rows: int = 0


@dataclass(frozen=True)
class StepStarted(NodeReport):
    """These units begin a step: if the node dies now, it died of this step. Only a careful node sends it."""

    position: Position
    units: tuple[UnitId, ...]


@dataclass(frozen=True)
class StepEnded(NodeReport):
    """These units ended a step. May arrive after the next `StepStarted`."""

    position: Position
    units: tuple[UnitId, ...]


@dataclass(frozen=True)
class StepOverdue(NodeReport):
    """A step has been running for too many `seconds`; the node ends its process because of it."""

    position: Position
    units: tuple[UnitId, ...]
    seconds: float


@dataclass(frozen=True)
class CaughtUp(NodeReport):
    """A node has taken all `steps` of an `InstallUnits`, `seconds` after it received that command."""

    units: int = 0
    steps: int = 0
    replayed_rows: int = 0
    seconds: float = 0.0


class UnchangedUnit(NamedTuple):
    """A unit that last changed in batch `changed`; as of batch `through` its state is still that."""

    unit: UnitId
    changed: Batch
    through: Batch


@dataclass(frozen=True)
class SnapshotTaken(NodeReport):
    """The answer to `TakeSnapshot`: new states, and units that did not change. Units that failed are in neither."""

    lease: str
    states: tuple[StateRef, ...] = ()
    unchanged: tuple[UnchangedUnit, ...] = ()


class StoppedUnit(NamedTuple):
    """A unit that takes no step after this batch."""

    unit: UnitId
    batch: Batch


@dataclass(frozen=True)
class UnitsReleased(NodeReport):
    """The answer to `ReleaseUnits`: one state for every unit, `stored` already, or offered and stored later.

    The answer to a `warm` one has no states, and the batch after which each unit has `stopped`.
    """

    states: tuple[StateRef, ...]
    stored: bool = True
    stopped: tuple[StoppedUnit, ...] = ()

    @property
    def last_batches(self) -> tuple[StoppedUnit, ...]:
        """The units, with or without states, and the batch after which each has stopped."""
        return (*(StoppedUnit(ref.unit, Batch(ref.batch)) for ref in self.states), *self.stopped)


@dataclass(frozen=True)
class StateStored(NodeReport):
    """An offered state is in the store now. May overtake the `UnitsReleased` that offers it."""

    state: StateRef


@dataclass(frozen=True)
class UnitsInstalled(NodeReport):
    """These units have their states and take steps; `direct_bytes` came straight from another node."""

    units: tuple[UnitId, ...]
    direct_bytes: int = 0


@dataclass(frozen=True)
class StandbysCaughtUp(NodeReport):
    """These standbys have taken every batch that was published, as far as their node knew."""

    units: tuple[UnitId, ...]


@dataclass(frozen=True)
class StandbysDropped(NodeReport):
    """The node has dropped these standbys: the log of their next step is gone, and a newer state replaces it."""

    units: tuple[UnitId, ...]


@dataclass(frozen=True)
class NodeFailed(NodeReport):
    """A node cannot continue, and neither could another one in its place: the operator raised."""

    error: dict[str, Any]  # see wire.failures


@dataclass(frozen=True)
class Heartbeat(NodeReport):
    """A node is alive.

    `busy_seconds`, `pending_steps` and `running` are as of now, the others as of the end of the latest step.
    """

    busy_seconds: float = 0.0  # since the node started
    pending_steps: int = 0  # committed steps that some active unit on the node has not taken
    epoch: Epoch = FIRST_EPOCH
    loading: int = 0  # units whose states have not arrived
    done_batch: Batch = NO_BATCH  # the newest batch that all active units on the node have taken
    next_timer_ms: int | None = None  # when the earliest processing-time timer is due
    next_event_timers: dict[int, int] = field(default_factory=dict)  # likewise in event time, by stage
    staged_bytes: int = 0
    replayed_rows: int = 0
    units: tuple[UnitStatistics, ...] = ()
    keys: KeyStatistics | None = None  # of the last complete interval; None before the first
    costs: tuple[StageCosts, ...] = ()  # of the shuffled stages that are measured
    running: RunningStep | None = None
    standbys: tuple[UnitStatistics, ...] = ()
    followed_batch: Batch = NO_BATCH  # the newest batch that all standbys on the node have taken


NodeCommand = InstallUnits | ApplyStep | FollowBatches | TakeSnapshot | ReleaseUnits | DropUnits | LeaveJob

COMMANDS: tuple[type[Message], ...] = (
    InstallUnits,
    ApplyStep,
    FollowBatches,
    TakeSnapshot,
    ReleaseUnits,
    DropUnits,
    LeaveJob,
)
REPORTS: tuple[type[NodeReport], ...] = (
    NodeJoined,
    SpareReady,
    StepApplied,
    StepStarted,
    StepEnded,
    StepOverdue,
    CaughtUp,
    SnapshotTaken,
    UnitsReleased,
    StateStored,
    UnitsInstalled,
    StandbysCaughtUp,
    StandbysDropped,
    NodeFailed,
    Heartbeat,
)


def _kind_of(message: type[Message]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).lower()


KINDS: dict[type[Message], str] = {message: _kind_of(message) for message in (*COMMANDS, *REPORTS)}
_codecs: dict[type[Message], Codec] = {message: derive_codec(message) for message in KINDS}
_classes = {kind: message for message, kind in KINDS.items()}


def encode_message(message: Message) -> dict[str, Any]:
    """Return the JSON document of a message with its kind, from which `decode_message` makes the message again."""
    return {"kind": KINDS[type(message)], "message": message.to_json()}


def decode_message(document: dict[str, Any]) -> Message:
    """Return the message of a document of `encode_message`; `ValueError` if its kind is unknown."""
    message = _classes.get(document["kind"])
    if message is None:
        raise ValueError(f"no message has the kind {document['kind']!r}. Run the same version on driver and nodes.")
    return message.from_json(document["message"])
