"""One strategy per file; a new one needs a file here and an entry in `KEY_STRATEGIES`.

A strategy is a function of a `KeyProblem` and its options. It returns a `KeyProposal` in which no node exceeds the cap,
or raises `NotPlaced`; it never forces a key. A strategy that heeds `most_entries` and cannot satisfy it returns
its proposal with the fewest entries.
"""

from collections.abc import Callable, Mapping

from migration.keys.problem import KeyProposal
from migration.keys.strategies.knap import knap

KEY_STRATEGIES: Mapping[str, Callable[..., KeyProposal]] = {
    "knap": knap,
}

__all__ = ["KEY_STRATEGIES"]
