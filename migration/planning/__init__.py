"""From a question about nodes to a plan: one strategy a file, one front door."""

from migration.planning.front_door import DEFAULT_TAU, plan
from migration.planning.sequence import plan_sequence
from migration.planning.strategies import STRATEGIES, Proposal
from migration.planning.values import AdditiveTerms, AdditiveValue, ValueFunction

__all__ = [
    "DEFAULT_TAU",
    "STRATEGIES",
    "AdditiveTerms",
    "AdditiveValue",
    "Proposal",
    "ValueFunction",
    "plan",
    "plan_sequence",
]
