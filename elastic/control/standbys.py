"""Standbys in plans of warm migrations: the copies that exist, and the places of standbys afterwards."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elastic.core.ids import UnitId
from elastic.core.statistics import UnitStatistics
from elastic.routing import Routing
from elastic.routing.standbys import carry_standbys, place_standbys
from migration import Copy, Plan, Standbys, Workload

LEAST_SECONDS = 0.05  # of steps, of owners and of standbys: less is noise, and one garbage collection decides


def measure_share(owned: Iterable[UnitStatistics], followed: Iterable[UnitStatistics]) -> float | None:
    """Return what a standby works, as a share of what its owner does; None while too little is measured.

    A standby has taken other steps than its owner: it began later, and lags behind. So the seconds of each unit are
    compared per row, and weighted by the work of its owner.
    """
    owners = {one.unit: one for one in owned if one.rows}
    rows: dict[UnitId, int] = defaultdict(int)
    seconds: dict[UnitId, float] = defaultdict(float)
    for one in followed:
        if one.rows and one.unit in owners:
            rows[one.unit] += one.rows
            seconds[one.unit] += one.seconds
    worked = sum(owners[unit].seconds for unit in rows)
    if min(worked, sum(seconds.values())) < LEAST_SECONDS:
        return None
    return sum(owners[unit].rows * seconds[unit] / rows[unit] for unit in rows) / worked


@dataclass(frozen=True)
class StandbyCopies:
    """The copies of every task that could take over now, `count` of them at most; `hosts` says where a node runs.

    `share` is what a standby was measured to work, as a share of what its owner does; None if too little was measured.

    Invariant: `ready` has the committed standbys of `routing` that have caught up in all stages with state.
    """

    routing: Routing
    ready: tuple[tuple[str, ...], ...]
    count: int
    hosts: Mapping[str, str]
    share: float | None = None

    def plan_options(self) -> dict[str, Any]:
        """Return the arguments of `migration.plan`; without a measured share the planner assumes its own."""
        share = {} if self.share is None else {"standby_share": self.share}
        return {"standbys": Standbys(self.ready), "standby_count": self.count, **share}

    def place(self, plan: Plan, workload: Workload) -> Plan:
        """Return the plan with the standbys that the engine will have, and the copies that it makes for them.

        A former owner has a copy only if it switched roles with a standby.
        The reason names the share of standbys' work in the loads.
        """
        after = carry_standbys(self.routing, plan.target)
        hosts = self._expect_hosts(plan.target.nodes)
        placed = place_standbys(plan.target, self.count, hosts, after) or ((),) * plan.target.tasks
        held = carry_standbys(replace(self.routing, standbys=self.ready), plan.target)
        sizes = workload.state.tolist()
        copies = tuple(
            Copy(task, node, size)
            for task, (nodes, holders, size) in enumerate(zip(placed, held, sizes, strict=True))
            for node in nodes
            if node not in holders
        )
        standbys = Standbys(placed)
        followed = standbys.followed_work(plan.target.nodes, workload)
        owned = plan.target.loads(workload).values()
        return replace(
            plan,
            standbys=standbys,
            copies=copies,
            loads=tuple(work + plan.standby_share * more for work, more in zip(owned, followed, strict=True)),
            reason=f"{plan.reason}; {self._explain(plan.standby_share)}",
        )

    def _expect_hosts(self, nodes: Sequence[str]) -> dict[str, str]:
        """Return where the nodes run; a node that joins is expected where the fewest of the others are.

        Nodes whose host is unknown count as being on a host of their own, so all standbys would be placed there.
        """
        hosts = {node: self.hosts[node] for node in nodes if node in self.hosts}
        crowds = {**dict.fromkeys(self.hosts.values(), 0), **Counter(hosts.values())}
        for node in nodes:
            if crowds and node not in hosts:
                hosts[node] = min(crowds, key=lambda host: (crowds[host], host))
                crowds[hosts[node]] += 1
        return hosts

    def _explain(self, share: float) -> str:
        origin = "assumed until steps of standbys are measured" if self.share is None else "as measured"
        return f"a standby works {share:.2g} of what the owner of its task does, {origin}"
