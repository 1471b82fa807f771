"""Plan a migration: `plan` for one step, `plan_sequence` for several; one strategy per file."""

from migration.planning.plan import DEFAULT_TAU, plan
from migration.planning.sequence import plan_sequence
from migration.planning.strategies import STRATEGIES, Proposal
from migration.planning.values import AdditiveTerms, AdditiveValue, SearchGuide, ValueFunction

__all__ = [
    "DEFAULT_TAU",
    "STRATEGIES",
    "AdditiveTerms",
    "AdditiveValue",
    "Proposal",
    "SearchGuide",
    "ValueFunction",
    "plan",
    "plan_sequence",
]
