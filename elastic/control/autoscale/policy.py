"""The interface of autoscaling policies: an observation in, a decision out."""

from dataclasses import dataclass
from typing import Protocol

from elastic.control.key_request import KeyRequest
from elastic.control.load import Load
from elastic.errors import InvalidAutoscaling
from elastic.numbers import as_int


@dataclass(frozen=True)
class Observation:
    """A job at one moment; every node is up and measured, and no migration is in progress."""

    at: float  # seconds of a monotonic clock
    nodes: int
    load: Load
    unsplit_stage: str | None = None  # a partial stage that splits no keys, and could split those of the head


@dataclass(frozen=True)
class Decision:
    """A target node count and the reason for it; the current count as target means no change.

    A decision for the current count may `rebalance` the nodes by moving keys, or `split` the head of a partial stage.
    """

    target: int
    reason: str
    rebalance: KeyRequest | None = None
    split: str | None = None  # the stage

    def __post_init__(self) -> None:
        target = as_int(self.target)
        if target is None:
            raise InvalidAutoscaling("target", self.target, "a policy must return a whole number of nodes")
        object.__setattr__(self, "target", target)


class Policy(Protocol):
    """A pure function of the observation: equal observations lead to equal decisions.

    The autoscaler enforces floor, ceiling and cool-down on every decision.
    """

    def decide(self, observation: Observation) -> Decision: ...
