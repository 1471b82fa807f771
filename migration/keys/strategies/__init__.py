"""One strategy per file; a new one needs a file here and an entry in `KEY_STRATEGIES`.

A strategy is a function of a `KeyProblem` and its options. It returns a `KeyProposal` in which no node exceeds the cap,
or raises `NotPlaced`; it never forces a key. A strategy that heeds `most_entries` and cannot satisfy it returns
its proposal with the fewest entries.
"""

from collections.abc import Callable, Mapping

from migration.keys.problem import KeyProposal
from migration.keys.strategies.ftlb import ftlb
from migration.keys.strategies.knap import knap
from migration.keys.strategies.llfd import llfd
from migration.keys.strategies.min_mig import min_mig
from migration.keys.strategies.min_table import min_table
from migration.keys.strategies.mixed import mixed
from migration.keys.strategies.mixed_bf import mixed_bf
from migration.keys.strategies.readj import readj
from migration.keys.strategies.simple import simple
from migration.keys.strategies.switch_first import switch_first
from migration.keys.strategies.task_b import task_b

KEY_STRATEGIES: Mapping[str, Callable[..., KeyProposal]] = {
    "knap": knap,
    "mixed": mixed,
    "mixed-bf": mixed_bf,
    "min-mig": min_mig,
    "min-table": min_table,
    "llfd": llfd,
    "simple": simple,
    "readj": readj,
    "switch-first": switch_first,
    "ftlb": ftlb,
    "task-b": task_b,
}
STANDBY_STRATEGIES = ("switch-first", "ftlb", "task-b")  # those that plan standbys; without any they move keys only

__all__ = ["KEY_STRATEGIES", "STANDBY_STRATEGIES"]
