"""A scale request: its defaults, its checks, and the plan that it leads to.

Job methods, the HTTP API and the command line read the defaults from `ScaleRequest`. The planner is imported when a
plan is made, so that a command line can show the defaults without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

from elastic.errors import InvalidRequest
from elastic.numbers import as_int, as_number

if TYPE_CHECKING:
    from elastic.control.standbys import StandbyCopies
    from migration import Ownership, Plan, Workload

MODES: Mapping[str, str] = {
    "auto": "warm if the job has standbys or spares, else progressive",
    "progressive": "mini-migrations that are bounded per node",
    "live": "all moves at once, while the stream runs",
    "warm": "targets follow their tasks, at a bounded speed, until all can take over at once",
    "suspend": "all moves at once, while the stream is suspended",
    "restart": "stop the stream and all nodes, then start them as planned; a baseline for comparison",
}
TRANSFERS: Mapping[str, str] = {
    "store": "the source node writes states to the store and the target reads them",
    "direct": "the target fetches states from the source node, which also writes them to the store",
}


@dataclass(frozen=True)
class ScaleRequest:
    """A target (exactly one of `nodes`, `add` and `remove`; none is a rebalance) and how to get there.

    `tasks_per_node` and `bytes_per_node` bound what is in flight from or to a node at a time in `progressive` mode.
    `choose_mode` replaces the mode `auto` by one of the others.
    """

    nodes: int | None = None
    add: int | None = None
    remove: tuple[str, ...] = ()
    strategy: str = "ssm"
    tau: float = 0.2
    mode: str = "auto"
    tasks_per_node: int | None = 2
    bytes_per_node: float | None = None
    transfer: str = "store"
    relax: bool = True  # if no assignment is balanced, the plan uses the smallest feasible cap instead of failing
    knowledge: Mapping[str, Any] = field(default_factory=dict)  # what the strategy needs besides, such as a value table

    def __post_init__(self) -> None:
        if sum((self.nodes is not None, self.add is not None, bool(self.remove))) > 1:
            raise InvalidRequest("nodes, add and remove exclude each other. Give one of them.")
        for name, known in (("mode", MODES), ("transfer", TRANSFERS)):
            if getattr(self, name) not in tuple(known):
                raise InvalidRequest(f"unknown {name} {getattr(self, name)!r}. Use one of {', '.join(known)}.")
        for name in ("nodes", "add", "tasks_per_node", "bytes_per_node"):
            if (value := getattr(self, name)) is not None:
                number = as_number(value) if name == "bytes_per_node" else as_int(value)
                if number is None or not number > 0:
                    kind = "number" if name == "bytes_per_node" else "whole number"
                    raise InvalidRequest(f"{name}={value!r} is invalid. Give a {kind} above zero.")
                object.__setattr__(self, name, number)

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names of all fields but the target and the strategy's knowledge."""
        others = ("nodes", "add", "remove", "knowledge")
        return [option.name for option in fields(cls) if option.name not in others]

    def choose_mode(self, *, has_reserves: bool) -> Self:
        """Return the request with the mode that suits a job with or without standbys or spares, unless it names one.

        Warm migrations disturb the stream least, but need the log since the last snapshots, and use neither direct
        transfers nor bounds on bytes; with standbys or spares most of their work is done before they begin.
        """
        if self.mode != "auto":
            return self
        is_warm = has_reserves and self.transfer == "store" and self.bytes_per_node is None
        return replace(self, mode="warm" if is_warm else "progressive")

    def plan(self, current: "Ownership", workload: "Workload", standbys: "StandbyCopies | None" = None) -> "Plan":
        """Return the plan for this request; errors of the planner say what would be feasible.

        With `standbys`, which are those of `current`, a move to a standby that has caught up costs nothing.
        """
        from migration import plan

        count = self._target_count(current)
        if count > current.tasks:
            raise InvalidRequest(
                f"{count} nodes for {current.tasks} tasks leave nodes without tasks. Use at most {current.tasks}."
            )
        made = plan(
            current,
            count,
            workload,
            tau=self.tau,
            strategy=self.strategy,
            leaving=list(self.remove),
            relax=self.relax,
            **({} if standbys is None else standbys.plan_options()),
            **self.knowledge,
        )
        return made if standbys is None else standbys.place(made, workload)

    def _target_count(self, current: "Ownership") -> int:
        unknown = sorted(set(self.remove) - set(current.nodes))
        if unknown:
            raise InvalidRequest(f"unknown node {unknown[0]!r}. Use one of {', '.join(current.nodes)}.")
        if self.nodes is not None:
            return self.nodes
        count = len(current.nodes) + (self.add or 0) - len(set(self.remove))
        if count < 1:
            raise InvalidRequest("the request removes every node. Keep at least one.")
        return count
