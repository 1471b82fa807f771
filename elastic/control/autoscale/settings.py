"""Policies by name, and the settings of an autoscaler, checked before it starts."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from elastic.control.autoscale.imbalance import Imbalance
from elastic.control.autoscale.policy import Decision, Observation, Policy
from elastic.control.autoscale.utilisation import Utilisation
from elastic.control.monitor import OBSERVE_SECONDS, WINDOW_SECONDS
from elastic.control.request import ScaleRequest
from elastic.errors import InvalidAutoscaling, UnknownPolicy
from elastic.numbers import as_int, as_number

POLICIES: dict[str, Callable[..., Policy]] = {"utilisation": Utilisation, "imbalance": Imbalance}

_MIN_WINDOW_SECONDS = 2 * OBSERVE_SECONDS  # utilisation needs two observations
_TARGET_FIELDS = ("nodes", "add", "remove")


@dataclass(frozen=True)
class AutoscalerSettings:
    """A policy and its bounds. Invariant: 1 <= floor <= ceiling <= tasks, and the monitor keeps the whole window."""

    tasks: int
    policy: Policy
    name: str  # of the policy, for the journal
    ceiling: int
    floor: int = 1
    recommend_only: bool = False
    window_seconds: float = 30.0  # long enough for several batches, short enough to react to a surge
    cool_down_seconds: float = 60.0  # the effect of a change must be measured before the next one
    scaling: Mapping[str, Any] = field(default_factory=dict)  # arguments of `job.scale` other than the target

    @classmethod
    def from_arguments(
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
        """Return the settings for the arguments of `job.autoscale`; `options` are the policy's."""
        name = policy if isinstance(policy, str) else type(policy).__name__
        return cls(
            tasks,
            create_policy(policy, options),
            name,
            ceiling,
            floor,
            recommend_only,
            window_seconds,
            cool_down_seconds,
            dict(scaling or {}),
        )

    def __post_init__(self) -> None:
        for name in ("floor", "ceiling"):
            number = as_int(getattr(self, name))
            if number is None or number < 1:
                raise InvalidAutoscaling(name, getattr(self, name), "it must be a whole number of nodes, at least 1")
            object.__setattr__(self, name, number)
        if self.ceiling < self.floor:
            raise InvalidAutoscaling("ceiling", self.ceiling, f"it is below the floor, {self.floor}")
        if self.ceiling > self.tasks:
            raise InvalidAutoscaling("ceiling", self.ceiling, f"the job has only {self.tasks} tasks")
        if not _is_between(_MIN_WINDOW_SECONDS, self.window_seconds, WINDOW_SECONDS):
            why = f"the monitor supports windows of {_MIN_WINDOW_SECONDS:g} to {WINDOW_SECONDS:g} s"
            raise InvalidAutoscaling("window_seconds", self.window_seconds, why)
        if not _is_between(0.0, self.cool_down_seconds, sys.float_info.max):
            raise InvalidAutoscaling("cool_down_seconds", self.cool_down_seconds, "it must be finite and at least 0")
        self.request(self.floor)

    @property
    def pause_seconds(self) -> float:
        """Time without changes after a change: the cool-down, and until the window holds nothing from before it."""
        return max(self.cool_down_seconds, self.window_seconds)

    def decide(self, observation: Observation) -> Decision:
        """Return the policy's decision, limited to floor and ceiling."""
        decision = self.policy.decide(observation)
        if decision.target < self.floor:
            return Decision(self.floor, f"{decision.reason}; the floor is {self.floor}")
        if decision.target > self.ceiling:
            return Decision(self.ceiling, f"{decision.reason}; the ceiling is {self.ceiling}")
        return decision

    def request(self, nodes: int) -> ScaleRequest:
        """Return the scale request for this number of nodes."""
        for name, value in self.scaling.items():
            if name in _TARGET_FIELDS or name not in ScaleRequest.__dataclass_fields__:
                why = "it must be an argument of job.scale other than nodes, add and remove"
                raise InvalidAutoscaling(f"scaling[{name!r}]", value, why)
        return replace(ScaleRequest(nodes=nodes), **self.scaling)


def create_policy(policy: str | Policy, options: Mapping[str, Any]) -> Policy:
    """Return the policy itself, or the policy of that name with these options."""
    if not isinstance(policy, str):
        if not callable(getattr(policy, "decide", None)):
            raise UnknownPolicy(policy, POLICIES)
        if options:
            name, value = next(iter(options.items()))
            raise InvalidAutoscaling(name, value, "a policy object takes its options in its own constructor")
        return policy
    if policy not in POLICIES:
        raise UnknownPolicy(policy, POLICIES)
    factory = POLICIES[policy]
    known = inspect.signature(factory).parameters
    for name, value in options.items():
        if name not in known:
            raise InvalidAutoscaling(name, value, f"policy {policy!r} takes {', '.join(known) or 'no options'}")
    return factory(**options)


def _is_between(low: float, value: object, high: float) -> bool:
    number = as_number(value)
    return number is not None and low <= number <= high
