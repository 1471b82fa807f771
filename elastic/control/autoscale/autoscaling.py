"""How a job is to be autoscaled: checked once, before anything starts."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from elastic.control.autoscale.policies import policy_of
from elastic.control.autoscale.policy import Decision, Observation, Policy
from elastic.control.monitor import OBSERVE_SECONDS, WINDOW_SECONDS
from elastic.control.request import ScaleRequest
from elastic.errors import InvalidAutoscaling
from elastic.numbers import as_number, as_whole

_LEAST_WINDOW_SECONDS = 2 * OBSERVE_SECONDS  # a share of time needs two observations
_DECIDED_HERE = ("nodes", "add", "remove")


@dataclass(frozen=True)
class Autoscaling:
    """A policy and its bounds. Invariant: 1 <= floor <= ceiling <= tasks, and the window is one the monitor keeps."""

    tasks: int
    policy: Policy
    name: str  # of the policy, for the journal
    ceiling: int
    floor: int = 1
    recommend_only: bool = False
    window_seconds: float = 30.0  # long enough for some batches, short enough to meet a rush
    cool_down_seconds: float = 60.0  # after a change its effect must show before the next one
    scaling: Mapping[str, Any] = field(default_factory=dict)  # how to move: what `job.scale` takes besides a number

    @classmethod
    def of(
        cls,
        tasks: int,
        *,
        ceiling: int,
        policy: str | Policy = "utilisation",
        floor: int = 1,
        recommend_only: bool = False,
        window_seconds: float = window_seconds,
        cool_down_seconds: float = cool_down_seconds,
        scaling: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """What `job.autoscale` takes; `options` are the policy's."""
        name = policy if isinstance(policy, str) else type(policy).__name__
        made = policy_of(policy, options)
        return cls(
            tasks, made, name, ceiling, floor, recommend_only, window_seconds, cool_down_seconds, dict(scaling or {})
        )

    def __post_init__(self) -> None:
        for name in ("floor", "ceiling"):
            number = as_whole(getattr(self, name))
            if number is None or number < 1:
                raise InvalidAutoscaling(name, getattr(self, name), "it must be a whole number of nodes, 1 or more")
            object.__setattr__(self, name, number)
        if self.ceiling < self.floor:
            raise InvalidAutoscaling("ceiling", self.ceiling, f"it is below the floor, {self.floor}")
        if self.ceiling > self.tasks:
            raise InvalidAutoscaling("ceiling", self.ceiling, f"there are only {self.tasks} tasks to share")
        if not _between(_LEAST_WINDOW_SECONDS, self.window_seconds, WINDOW_SECONDS):
            why = f"the monitor can look back {_LEAST_WINDOW_SECONDS:g} to {WINDOW_SECONDS:g} s"
            raise InvalidAutoscaling("window_seconds", self.window_seconds, why)
        if not _between(0.0, self.cool_down_seconds, sys.float_info.max):
            raise InvalidAutoscaling("cool_down_seconds", self.cool_down_seconds, "it must be 0 or more, and finite")
        self.request(self.floor)

    @property
    def quiet_seconds(self) -> float:
        """After a change: until the cool-down is over, and the window holds nothing from before it."""
        return max(self.cool_down_seconds, self.window_seconds)

    def wish(self, observation: Observation) -> Decision:
        """What the policy decides, brought within the floor and the ceiling."""
        decided = self.policy.decide(observation)
        if decided.target < self.floor:
            return Decision(self.floor, f"{decided.reason}; the floor is {self.floor}")
        if decided.target > self.ceiling:
            return Decision(self.ceiling, f"{decided.reason}; the ceiling is {self.ceiling}")
        return decided

    def request(self, nodes: int) -> ScaleRequest:
        """Return the request for a number of nodes, moved as `scaling` says."""
        for name, value in self.scaling.items():
            if name in _DECIDED_HERE or name not in ScaleRequest.__dataclass_fields__:
                raise InvalidAutoscaling(f"scaling[{name!r}]", value, "it says how to move, as in job.scale")
        return replace(ScaleRequest(nodes=nodes), **self.scaling)


def _between(least: float, value: object, most: float) -> bool:
    number = as_number(value)
    return number is not None and least <= number <= most
