"""What controller and nodes tell each other. Commands are imperative, reports are in the past tense.

Every message may arrive late, twice or in another order than it was sent; none may be lost while both ends live (the
sender repeats it until it is acknowledged). Commands are numbered, and a node takes them in order (see `ordering`).
Reports name the *incarnation* of their node: one life of one process. The controller listens only to the incarnation it
gave the units to, so a process that was taken for dead can do no harm.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from elastic.results import ResultRef
from elastic.runtime.protocol.steps import Position, Step
from storage.state import LogRef, StateRef


class Held(NamedTuple):
    """One unit to take over: its saved state (None: empty), right as of batch `through`.

    What the unit put out in steps up to `reported` is already in the controller's hands and must not be reported again.
    `source` is the address of a node that offers the same bytes: it has them before the store does, or sooner.
    Steps at `isolated` have killed processes: the node lets a child process try them.
    """

    slot: int
    state: StateRef | None
    through: int
    reported: Position
    source: str | None = None
    isolated: tuple[Position, ...] = ()

    def to_json(self) -> list[Any]:
        state = self.state and self.state.to_json()
        return [self.slot, state, self.through, list(self.reported), self.source, list(map(list, self.isolated))]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        slot, state, through, reported, source, isolated = document
        positions = tuple(Position(*position) for position in isolated)
        return cls(slot, state and StateRef.from_json(state), through, Position(*reported), source, positions)


@dataclass(frozen=True)
class Adopt:
    """Take these units over: load, repeat the steps after their states, then go on with what comes.

    A node that replaces a lost one is `careful`: it reports each of these steps before it takes it, and at `suspects`,
    where processes of this node died before, each unit.
    """

    epoch: int
    units: tuple[Held, ...]
    steps: tuple[Step, ...]
    careful: bool = False
    suspects: tuple[Position, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "units": [unit.to_json() for unit in self.units],
            "steps": [step.to_json() for step in self.steps],
            "careful": self.careful,
            "suspects": list(map(list, self.suspects)),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(
            document["epoch"],
            tuple(map(Held.from_json, document["units"])),
            tuple(map(Step.from_json, document["steps"])),
            document["careful"],
            tuple(Position(*position) for position in document["suspects"]),
        )


@dataclass(frozen=True)
class Apply:
    """This step is committed: all units on the node take it when its turn comes."""

    epoch: int
    step: Step

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "step": self.step.to_json()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(document["epoch"], Step.from_json(document["step"]))


@dataclass(frozen=True)
class Snapshot:
    """Save every unit that changed after the batch given for it; say of the others that they did not."""

    epoch: int
    lease: str
    saved: dict[int, int]  # slot -> batch as of which the committed manifest has its state

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "lease": self.lease, "saved": list(self.saved.items())}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(document["epoch"], document["lease"], dict(document["saved"]))


@dataclass(frozen=True)
class Release:
    """Stop these units at the end of their batch, store their states under the lease, and keep them until told.

    With `direct`, offer them to other nodes, report that, and store them behind it.
    """

    epoch: int
    slots: tuple[int, ...]
    lease: str
    direct: bool = False

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**{**document, "slots": tuple(document["slots"])})


@dataclass(frozen=True)
class Forget:
    """These released units work elsewhere now."""

    epoch: int
    slots: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(document["epoch"], tuple(document["slots"]))


Message = Adopt | Apply | Snapshot | Release | Forget


@dataclass(frozen=True)
class Joined:
    """A node is up and owns nothing yet."""

    node: str
    incarnation: str
    address: str
    pid: int = 0

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**document)


@dataclass(frozen=True)
class Applied:
    """These units took a step; what they put out is durable.

    `emitted` holds the records for the next round, bound for `emitted_stages`; `results` those for the sink.
    """

    node: str
    incarnation: str
    position: Position
    slots: tuple[int, ...]
    emitted: LogRef | None = None
    emitted_stages: tuple[int, ...] = ()
    results: ResultRef | None = None
    rows: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "emitted": self.emitted and self.emitted.to_json(),
            "results": self.results and self.results.to_json(),
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        emitted, results = document["emitted"], document["results"]
        return cls(
            **{
                **document,
                "position": Position(*document["position"]),
                "slots": tuple(document["slots"]),
                "emitted_stages": tuple(document["emitted_stages"]),
                "emitted": emitted and LogRef.from_json(emitted),
                "results": results and ResultRef.from_json(results),
            }
        )


@dataclass(frozen=True)
class StepStarted:
    """These units begin to take a step: if the node dies now, it died of this step. Sent by a careful node only."""

    node: str
    incarnation: str
    position: Position
    slots: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        position, slots = Position(*document["position"]), tuple(document["slots"])
        return cls(document["node"], document["incarnation"], position, slots)


@dataclass(frozen=True)
class StepEnded(StepStarted):
    """They have taken it. May arrive after the next `StepStarted`."""


@dataclass(frozen=True)
class CaughtUp:
    """A node has taken all steps that its adoption named."""

    node: str
    incarnation: str
    units: int = 0
    replayed_rows: int = 0

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(document["node"], document["incarnation"], document["units"], document["replayed_rows"])


class Unchanged(NamedTuple):
    """A unit's last change was in batch `changed`; as of batch `through` its state is still that."""

    slot: int
    changed: int
    through: int


@dataclass(frozen=True)
class Saved:
    """The answer to `Snapshot`: new states, and units that did not change. Units that failed are in neither."""

    node: str
    incarnation: str
    lease: str
    states: tuple[StateRef, ...] = ()
    unchanged: tuple[Unchanged, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "states": [ref.to_json() for ref in self.states],
            "unchanged": [list(unit) for unit in self.unchanged],
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        states = tuple(map(StateRef.from_json, document["states"]))
        unchanged = tuple(Unchanged(*unit) for unit in document["unchanged"])
        return cls(**{**document, "states": states, "unchanged": unchanged})


@dataclass(frozen=True)
class Released:
    """The answer to `Release`: the states, one for every unit; they are `stored`, or offered and will be."""

    node: str
    incarnation: str
    states: tuple[StateRef, ...]
    stored: bool = True

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "states": [ref.to_json() for ref in self.states]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**{**document, "states": tuple(map(StateRef.from_json, document["states"]))})


@dataclass(frozen=True)
class Stored:
    """A state that was offered is in the store now; may overtake the report that it is offered."""

    node: str
    incarnation: str
    state: StateRef

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "state": self.state.to_json()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**{**document, "state": StateRef.from_json(document["state"])})


@dataclass(frozen=True)
class Installed:
    """These adopted units have their states, and work; `direct_bytes` came straight from another node."""

    node: str
    incarnation: str
    slots: tuple[int, ...]
    direct_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**{**document, "slots": tuple(document["slots"])})


@dataclass(frozen=True)
class Failed:
    """A node cannot go on, and neither could another one in its place: the operator raised."""

    node: str
    incarnation: str
    error: dict[str, Any]  # see wire.failures

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        return cls(**document)
