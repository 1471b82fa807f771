"""Policies by name; adding one is one file and one entry."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from elastic.control.autoscale.policy import Policy
from elastic.control.autoscale.utilisation import Utilisation
from elastic.errors import InvalidAutoscaling, UnknownPolicy

POLICIES: dict[str, Callable[..., Policy]] = {"utilisation": Utilisation}


def policy_of(policy: str | Policy, options: Mapping[str, Any]) -> Policy:
    """The policy itself, or the one of that name with these options."""
    if not isinstance(policy, str):
        if not callable(getattr(policy, "decide", None)):
            raise UnknownPolicy(policy, POLICIES)
        if options:
            name, value = next(iter(options.items()))
            raise InvalidAutoscaling(name, value, "a policy that is an object has its options already")
        return policy
    if policy not in POLICIES:
        raise UnknownPolicy(policy, POLICIES)
    make = POLICIES[policy]
    known = inspect.signature(make).parameters
    for name, value in options.items():
        if name not in known:
            raise InvalidAutoscaling(name, value, f"policy {policy!r} takes {', '.join(known) or 'no options'}")
    return make(**options)
