"""What a policy is told and what it answers."""

from dataclasses import dataclass
from typing import Protocol

from elastic.control.load import Load
from elastic.errors import InvalidAutoscaling
from elastic.numbers import as_whole


@dataclass(frozen=True)
class Observation:
    """A job at one moment: every node is up and measured, and no migration is under way."""

    at: float  # seconds of a clock that never goes back
    nodes: int
    load: Load


@dataclass(frozen=True)
class Decision:
    """How many nodes there should be, and why, in words; as many as there are is to stay."""

    target: int
    reason: str

    def __post_init__(self) -> None:
        target = as_whole(self.target)
        if target is None:
            raise InvalidAutoscaling("target", self.target, "a policy must decide for a whole number of nodes")
        object.__setattr__(self, "target", target)


class Policy(Protocol):
    """Decides from an observation alone: the same one is always answered with the same decision.

    It need not mind the floor, the ceiling or the cool-down: they are kept whatever it says.
    """

    def decide(self, observation: Observation) -> Decision: ...
