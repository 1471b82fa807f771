"""What a strategy answers: `strategy(problem, **knowledge) -> Proposal`."""

from typing import NamedTuple

from migration.model.ownership import Ownership


class Proposal(NamedTuple):
    """A target, why it was chosen, and the discounted cost foreseen after it (None without foresight)."""

    target: Ownership
    reason: str
    future_cost: float | None = None
