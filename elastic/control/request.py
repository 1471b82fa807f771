"""What a user asks for, checked before anything starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from elastic.errors import InvalidRequest
from elastic.numbers import as_number, as_whole
from migration import Ownership, Plan, Workload, plan

MODES: Mapping[str, str] = {
    "progressive": "mini-migrations, bounded per node; the default",
    "live": "all moves at once, while the stream runs",
    "suspend": "the stream waits until all moves are done",
    "restart": "the stream and all nodes are stopped, and started again as the plan says; for comparison",
}
TRANSFERS: Mapping[str, str] = {
    "store": "the source stores states, and the target reads them; the default",
    "direct": "the target fetches states from the source, which stores them behind it",
}


@dataclass(frozen=True)
class ScaleRequest:
    """How many nodes, or which: exactly one of `nodes`, `add` and `remove`, or none for a rebalance.

    `tasks_per_node` and `bytes_per_node` bound what is on its way from or to a node at a time in `progressive` mode.
    """

    nodes: int | None = None
    add: int | None = None
    remove: tuple[str, ...] = ()
    strategy: str = "ssm"
    tau: float = 0.2
    mode: str = "progressive"
    tasks_per_node: int | None = 2
    bytes_per_node: float | None = None
    transfer: str = "store"
    relax: bool = True  # the default everywhere: a plan that cannot be balanced takes the smallest feasible cap
    knowledge: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if sum((self.nodes is not None, self.add is not None, bool(self.remove))) > 1:
            raise InvalidRequest("nodes, add and remove say different things. Give one of them.")
        for name, known in (("mode", MODES), ("transfer", TRANSFERS)):
            if getattr(self, name) not in known:
                raise InvalidRequest(f"there is no {name} {getattr(self, name)!r}. Use one of {', '.join(known)}.")
        for name in ("nodes", "add", "tasks_per_node", "bytes_per_node"):
            if (value := getattr(self, name)) is not None:
                number = as_number(value) if name == "bytes_per_node" else as_whole(value)
                if number is None or not number > 0:
                    kind = "number" if name == "bytes_per_node" else "whole number"
                    raise InvalidRequest(f"{name}={value!r} cannot be. Give a {kind} above zero.")
                object.__setattr__(self, name, number)

    @classmethod
    def options(cls) -> list[str]:
        """What may be said besides how many nodes, or which, and what the strategy should know."""
        said = ("nodes", "add", "remove", "knowledge")
        return [one.name for one in fields(cls) if one.name not in said]

    def planned(self, current: Ownership, workload: Workload) -> Plan:
        """The plan for this request; errors of the planner say what would be possible."""
        wanted = self._node_count(current)
        if wanted > current.tasks:
            raise InvalidRequest(
                f"{wanted} nodes for {current.tasks} tasks: some would have nothing to do. Use at most {current.tasks}."
            )
        return plan(
            current,
            wanted,
            workload,
            tau=self.tau,
            strategy=self.strategy,
            leaving=list(self.remove),
            relax=self.relax,
            **self.knowledge,
        )

    def _node_count(self, current: Ownership) -> int:
        unknown: Sequence[str] = sorted(set(self.remove) - set(current.nodes))
        if unknown:
            raise InvalidRequest(f"there is no node {unknown[0]!r}. There are {', '.join(current.nodes)}.")
        count = len(current.nodes)
        if self.nodes is not None:
            return self.nodes
        wanted = count + (self.add or 0) - len(set(self.remove))
        if wanted < 1:
            raise InvalidRequest("no node would be left. Keep at least one.")
        return wanted
