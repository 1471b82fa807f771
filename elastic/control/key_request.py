"""A request to balance the work of nodes by moving single keys: its defaults, its checks, and the plan it leads to."""

import math
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from elastic.control.request import ScaleRequest
from elastic.errors import InvalidRequest
from elastic.numbers import as_int, as_number

if TYPE_CHECKING:
    from elastic.control.key_loads import StageKeyLoads
    from migration import KeyPlan

LEVELS: Mapping[str, str] = {
    "tasks": "move whole tasks",
    "keys": "move single keys of a stage that is grouped by table",
    "auto": "plan both, and carry out the cheaper one that balances the nodes",
}
_MiB = 1 << 20
# What a plan stays below theta, for what is measured to satisfy theta too: both intervals are samples, and the busiest
# node is the one that both err for the most.
_STANDARD_ERRORS = 3.0
_SHARED = ("bytes_per_node", "relax")  # options of both levels with one meaning


@dataclass(frozen=True)
class KeyRequest:
    """How evenly work is to be spread, and what that may cost.

    After the plan no node carries more than (1 + `theta`) times the mean work. What was measured in one interval is off
    by chance in the next, so the plan aims at less, down to half of theta. The key table of the stage has at most
    `most_entries` entries, with those of protected keys. While keys move, a node parts with or gets at most
    `bytes_per_node` with one batch.
    """

    theta: float = 0.08
    strategy: str = "knap"
    most_entries: int = 3_000
    stage: str | None = None  # by name; None: the only one that is grouped by table
    bytes_per_node: float = 16 * _MiB  # parted, logged and joined in about 100 ms
    relax: bool = True  # if no plan balances the nodes, the plan uses the smallest theta that works instead of failing

    def __post_init__(self) -> None:
        for name, least, most, kind in (
            ("theta", 0.0, sys.float_info.max, "a number, at least 0"),
            ("most_entries", 1, math.inf, "a whole number above zero"),
            ("bytes_per_node", 1.0, math.inf, "a number above zero"),
        ):
            value = getattr(self, name)
            number = as_int(value) if name == "most_entries" else as_number(value)
            if number is None or not least <= number <= most:
                raise InvalidRequest(f"{name}={value!r} is invalid. Give {kind}.")
            object.__setattr__(self, name, number)
        if not isinstance(self.relax, bool):
            raise InvalidRequest(f"relax={self.relax!r} is invalid. Give True or False.")

    @classmethod
    def option_names(cls) -> list[str]:
        return [option.name for option in fields(cls)]

    def plan(self, measured: "StageKeyLoads") -> "KeyPlan":
        """Return the plan for this request; errors of the planner say what would be feasible."""
        from migration import plan_keys

        if measured.protected >= self.most_entries:
            raise InvalidRequest(
                f"most_entries={self.most_entries} leaves no room beside the entries of {measured.protected} protected "
                f"keys. Give at least {measured.protected + 1}."
            )
        return plan_keys(
            measured.loads,
            measured.nodes,
            pinned=measured.pinned_work,
            theta=self.theta,
            strategy=self.strategy,
            most_entries=self.most_entries - measured.protected,
            relax=self.relax,
            margin=min(_STANDARD_ERRORS * measured.load_error, self.theta / 2),
        )


_TASK_OPTIONS = frozenset(ScaleRequest.option_names()) | {"value"}
_KEY_OPTIONS = (frozenset(KeyRequest.option_names()) - {"strategy"}) | {"key_strategy"}
# Options of a rebalance by level, as the API and the command line name them; at level auto theta stands for tau.
LEVEL_OPTIONS: Mapping[str, Set[str]] = {
    "tasks": _TASK_OPTIONS,
    "keys": _KEY_OPTIONS,
    "auto": (_TASK_OPTIONS | _KEY_OPTIONS) - {"tau", "strategy", "value"},
}


def make_requests(how: Mapping[str, Any]) -> tuple[ScaleRequest, KeyRequest]:
    """Return the requests of both levels, with theta as the tolerance of both.

    `how` has options of either, and `key_strategy` for that of the keys: `strategy` could be that of either.
    """
    given = {name: value for name, value in how.items() if name != "key_strategy"}
    for_keys = {name: value for name, value in given.items() if name in KeyRequest.option_names()}
    for_tasks = {name: value for name, value in given.items() if name not in for_keys or name in _SHARED}
    unknown = sorted(set(for_tasks) - set(ScaleRequest.option_names()))
    if unknown or "strategy" in how or "tau" in how:
        name = unknown[0] if unknown else "strategy" if "strategy" in how else "tau"
        raise InvalidRequest(f"{name} is not an option of level 'auto'. Give theta, or choose a level.")
    keys = KeyRequest(strategy=how.get("key_strategy", KeyRequest.strategy), **for_keys)
    return ScaleRequest(tau=keys.theta, **for_tasks), keys
