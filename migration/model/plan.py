"""A plan: which tasks move where, what that costs, how balanced the result is, and why it was chosen."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from migration.errors import InvalidPlan
from migration.model.documents import parse_json, refuse_malformed
from migration.model.html import plan_to_html
from migration.model.moves import Move, compute_moves
from migration.model.ownership import Ownership
from migration.model.rendering import render_plan
from migration.model.scattered import apply_moves, ownership_from_dict
from migration.model.standbys import Copy, Standbys, compute_copies, most_followed
from migration.model.workload import Workload

# Loads are sums of floats, so a load is compared with the cap up to this share of the cap.
RELATIVE_EPSILON = 1e-9


class NodeLoad(NamedTuple):
    """A node and the work it would carry."""

    node: str
    work: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole decision; the command line, the log, the page and the tests read the same object.

    `cost` is the state that moves, `cap` the most work a node may carry (`relaxed` if it is above what `tau` allows,
    with the `reason`), `loads` the work of `target.nodes` in their order, and `future_cost` the discounted cost that a
    value function expects after this plan (None without one). `note` is for the caller, such as an assumption about
    the workload.

    With standbys, `cost` is the state on the critical path, that of tasks whose new owner holds no copy, and
    `background_cost` that of the `copies` that have to be made besides. `standbys_before` and `standbys` tell where
    copies are before and after. `loads` and `cap` count a standby as `standby_share` of the work of its task.
    """

    strategy: str
    current: Ownership
    target: Ownership
    moves: tuple[Move, ...]
    cost: float
    total_state: float
    loads: tuple[float, ...]
    tau: float
    cap: float
    relaxed: bool = False
    reason: str = ""
    future_cost: float | None = None
    note: str = ""
    standbys_before: Standbys | None = None
    standbys: Standbys | None = None
    standby_share: float = 0.0
    copies: tuple[Copy, ...] = ()

    @classmethod
    def between(
        cls,
        current: Ownership,
        target: Ownership,
        workload: Workload,
        *,
        standbys_before: Standbys | None = None,
        standbys: Standbys | None = None,
        standby_share: float = 0.0,
        **decision: Any,
    ) -> Self:
        """Make the plan from `current` to `target`, with the same arithmetic for every strategy."""
        moves = compute_moves(current, target, workload, standbys_before)
        loads = tuple(target.loads(workload).values())
        copies: tuple[Copy, ...] = ()
        if standbys_before is not None and standbys is not None:
            followed = standbys.followed_work(target.nodes, workload)
            loads = tuple([load + standby_share * work for load, work in zip(loads, followed, strict=True)])
            copies = compute_copies(current, standbys_before, standbys, workload)
        return cls(
            current=current,
            target=target,
            moves=moves,
            cost=math.fsum([move.size for move in moves]),
            total_state=workload.total_state,
            loads=loads,
            standbys_before=standbys_before,
            standbys=standbys,
            standby_share=standby_share,
            copies=copies,
            **decision,
        )

    @property
    def cost_share(self) -> float:
        """The cost as a share of all state, 0 to 1."""
        return self.cost / self.total_state if self.total_state else 0.0

    @property
    def background_cost(self) -> float:
        """The state of all copies that have to be made; it moves while the stream goes on."""
        return math.fsum([copy.size for copy in self.copies])

    @property
    def owned_cap_share(self) -> float | None:
        """The most work that a node may own, as a share of all work, without that of standbys; None without work."""
        total, cap = sum(self.loads), self.cap
        if self.standbys is not None:
            total /= 1 + self.standby_share * self.standbys.most
            cap /= 1 + self.standby_share * most_followed(self.standbys.most, len(self.target.nodes))
        return cap / total if total else None

    @property
    def switches(self) -> tuple[Move, ...]:
        """The moves to a standby of their task: roles are switched, and no state moves."""
        if self.standbys_before is None:
            return ()
        holders = self.standbys_before.nodes_by_task
        return tuple(move for move in self.moves if move.target in holders[move.task])

    @property
    def heaviest(self) -> NodeLoad:
        """The node with the most work after the migration; the first of them on a tie."""
        index = max(range(len(self.loads)), key=self.loads.__getitem__)
        return NodeLoad(self.target.nodes[index], self.loads[index])

    @property
    def balanced(self) -> bool:
        """Whether no node carries more than the cap."""
        return self.heaviest.work <= self.cap * (1 + RELATIVE_EPSILON)

    @property
    def joining(self) -> tuple[str, ...]:
        """Nodes that the target has and the current assignment has not."""
        return tuple(node for node in self.target.nodes if node not in self.current.nodes)

    @property
    def leaving(self) -> tuple[str, ...]:
        """Nodes that the current assignment has and the target has not."""
        return tuple(node for node in self.current.nodes if node not in self.target.nodes)

    def __str__(self) -> str:
        return render_plan(self)

    def __repr__(self) -> str:
        """One line; `str` has the whole plan."""
        nodes = f"{len(self.current.nodes)} -> {len(self.target.nodes)} nodes"
        verdict = "balanced" if self.balanced else "above the cap"
        return f"Plan({self.strategy}, {nodes}, moves={len(self.moves)}, cost={self.cost:g}, {verdict})"

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return plan_to_html(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "current": self.current.to_dict(),
            "target": self.target.to_dict(),
            "moves": [move._asdict() for move in self.moves],
            "cost": self.cost,
            "cost_share": self.cost_share,
            "total_state": self.total_state,
            "loads": list(self.loads),
            "heaviest": self.heaviest._asdict(),
            "tau": self.tau,
            "cap": self.cap,
            "balanced": self.balanced,
            "relaxed": self.relaxed,
            "reason": self.reason,
            "future_cost": self.future_cost,
            "note": self.note,
            "standbys_before": None if self.standbys_before is None else self.standbys_before.to_dict(),
            "standbys": None if self.standbys is None else self.standbys.to_dict(),
            "standby_share": self.standby_share,
            "copies": [copy._asdict() for copy in self.copies],
            "background_cost": self.background_cost,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; raise `InvalidPlan` if its parts contradict each other."""
        with refuse_malformed("a plan", InvalidPlan):
            future = document["future_cost"]
            plan = cls(
                strategy=str(document["strategy"]),
                current=ownership_from_dict(document["current"]),
                target=ownership_from_dict(document["target"]),
                moves=tuple(
                    Move(int(move["task"]), str(move["source"]), str(move["target"]), float(move["size"]))
                    for move in document["moves"]
                ),
                cost=float(document["cost"]),
                total_state=float(document["total_state"]),
                loads=tuple(float(load) for load in document["loads"]),
                tau=float(document["tau"]),
                cap=float(document["cap"]),
                relaxed=bool(document["relaxed"]),
                reason=str(document["reason"]),
                future_cost=None if future is None else float(future),
                note=str(document.get("note", "")),  # plans written before there were notes have none
                standbys_before=_read_standbys(document.get("standbys_before")),  # nor standbys
                standbys=_read_standbys(document.get("standbys")),
                standby_share=float(document.get("standby_share", 0.0)),
                copies=tuple(
                    Copy(int(copy["task"]), str(copy["node"]), float(copy["size"]))
                    for copy in document.get("copies", ())
                ),
            )
        plan._refuse_contradictions()
        return plan

    def to_json(self) -> str:
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(parse_json(text, InvalidPlan))

    def _refuse_contradictions(self) -> None:
        everyone = (*self.target.nodes, *self.leaving)
        if apply_moves(self.current, self.moves, everyone).owners != self.target.owners:
            raise InvalidPlan("its moves do not lead from current to target. Plan again instead of editing plans.")
        if not math.isclose(self.cost, math.fsum(move.size for move in self.moves), rel_tol=RELATIVE_EPSILON):
            raise InvalidPlan(f"its cost {self.cost:g} is not the size of its moves. Plan again.")
        if len(self.loads) != len(self.target.nodes):
            raise InvalidPlan(f"it has {len(self.loads)} loads for {len(self.target.nodes)} nodes. Plan again.")
        self._refuse_wrong_standbys()

    def _refuse_wrong_standbys(self) -> None:
        before, after = self.standbys_before, self.standbys
        if before is None or after is None:
            if before is not after or self.copies:
                raise InvalidPlan("it has standbys before or after, and not both. Plan again.")
            return
        before.check_apart(self.current)
        after.check_apart(self.target)
        everything = Workload.uniform(self.current.tasks)
        missing = {(copy.task, copy.node) for copy in compute_copies(self.current, before, after, everything)}
        copies = {(copy.task, copy.node) for copy in self.copies}
        # A former owner may have to make a copy anew, if it drops the state that it gives away.
        again = {(move.task, move.source) for move in self.moves if move not in self.switches}
        if not missing <= copies <= missing | again or len(self.copies) != len(copies):
            raise InvalidPlan("its copies do not lead from the standbys before to those after. Plan again.")
        if any(move.size for move in self.switches):
            raise InvalidPlan("one of its moves to a standby has a size. Plan again.")


def _read_standbys(document: Mapping[str, Any] | None) -> Standbys | None:
    return None if document is None else Standbys.from_dict(document)
