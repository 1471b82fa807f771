"""Choice of the level of a rebalance: whole tasks or single keys. Both are planned, and the choice is explained."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from migration import Plan
from migration.model.html import format_card, format_line

if TYPE_CHECKING:
    from migration import KeyPlan  # brings compiled code with it

Level = Literal["tasks", "keys"]


@dataclass(frozen=True)
class LevelPlans:
    """The plans of both levels, made with one theta; where a level has no plan, why.

    Invariant: at least one level has a plan.
    """

    theta: float
    tasks: Plan | None
    keys: "KeyPlan | None"
    no_tasks: Exception | None = None
    no_keys: Exception | None = None

    @property
    def level(self) -> Level:
        """The cheaper level of those that balance the nodes; if neither does, the one that comes closer.

        A plan of tasks with a note is made for assumed work: keys that were measured say more.
        """
        if self.tasks is None or self.keys is None:
            return "tasks" if self.keys is None else "keys"
        if self.tasks.note:
            return "keys"
        balanced = {"tasks": self.overload("tasks") <= self.theta, "keys": self.overload("keys") <= self.theta}
        if balanced["tasks"] != balanced["keys"]:
            return "tasks" if balanced["tasks"] else "keys"
        if balanced["tasks"]:
            return "tasks" if self.tasks.cost < self.keys.cost else "keys"
        return "tasks" if self.overload("tasks") < self.overload("keys") else "keys"

    @property
    def reason(self) -> str:
        """Why the level is chosen, with what each would move and reach."""
        return f"level {self.level}: {self._describe('tasks')}; {self._describe('keys')}"

    def __repr__(self) -> str:
        """One line; `reason` tells both plans apart."""
        return f"LevelPlans({self.reason})"

    def _repr_html_(self) -> str:
        """Return what notebooks show: why, and the plan of the chosen level."""
        plan = self.tasks if self.level == "tasks" else self.keys
        assert plan is not None  # noqa: S101 - for the type checker; the chosen level has a plan
        return format_card("Levels", format_line(self.reason), plan._repr_html_())

    def overload(self, level: Level) -> float:
        """Return the work of the heaviest node after the plan of a level, over the mean, less 1."""
        plan = self.tasks if level == "tasks" else self.keys
        if plan is None:
            return float("inf")
        loads = plan.loads if isinstance(plan, Plan) else plan.loads_after
        mean = sum(loads) / len(loads)
        # Plans may be at the cap up to rounding, and that is balanced.
        return max(loads) / mean - 1 - 1e-9 if mean else 0.0

    def _describe(self, level: Level) -> str:
        plan, obstacle = (self.tasks, self.no_tasks) if level == "tasks" else (self.keys, self.no_keys)
        if plan is None:
            return f"moving {level} is impossible ({str(obstacle).rstrip('.')})"
        reached = self.overload(level)
        target = "balances the nodes" if reached <= self.theta else f"leaves one {reached:.1%} above the mean"
        assumed = f" ({plan.note})" if level == "tasks" and plan.note else ""
        return f"moving {len(plan.moves)} {level} with {plan.cost:,.0f} bytes {target}{assumed}"
