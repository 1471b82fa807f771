"""What plans of warm migrations know of standbys: the copies that exist, and where standbys are afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from elastic.routing import Routing
from elastic.routing.standbys import carry_standbys, place_standbys
from migration import Copy, Plan, Standbys, Workload


@dataclass(frozen=True)
class StandbyCopies:
    """The copies of every task that could take over now, `count` of them at most; `hosts` names the host of a node.

    Invariant: `ready` has the committed standbys of `routing` that have caught up in all stages with state.
    """

    routing: Routing
    ready: tuple[tuple[str, ...], ...]
    count: int
    hosts: Mapping[str, str]

    def plan_options(self) -> dict[str, Any]:
        """Return the arguments of `migration.plan`. The cap and the loads are those of owned tasks alone."""
        return {"standbys": Standbys(self.ready), "standby_count": self.count, "standby_share": 0.0}

    def place(self, plan: Plan, workload: Workload) -> Plan:
        """Return the plan with the standbys that the engine will have, and the copies that it makes for them.

        A former owner has a copy only if it switched roles with a standby. Hosts of nodes that join are not known yet.
        """
        after = carry_standbys(self.routing, plan.target)
        placed = place_standbys(plan.target, self.count, self.hosts, after) or ((),) * plan.target.tasks
        held = carry_standbys(replace(self.routing, standbys=self.ready), plan.target)
        sizes = workload.state.tolist()
        copies = tuple(
            Copy(task, node, size)
            for task, (nodes, holders, size) in enumerate(zip(placed, held, sizes, strict=True))
            for node in nodes
            if node not in holders
        )
        return replace(plan, standbys=Standbys(placed), copies=copies)
