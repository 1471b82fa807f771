"""Plan by key (paper 000): `plan_keys` moves single keys between nodes and keeps a small routing table beside the hash.

A key goes to the node in its routing-table entry if it has one, else home, where its hash leads. Start with
`plan_keys(KeyLoads(hashes, home, current, work, size), nodes=15)`.
"""

from migration.keys.key_plan import KeyCopies, KeyEntries, KeyEntry, KeyMove, KeyMoves, KeyPlan
from migration.keys.loads import KeyLoads
from migration.keys.plan import plan_keys
from migration.keys.problem import DEFAULT_MOST_ENTRIES, DEFAULT_THETA
from migration.keys.standbys import KeyStandbys, hash_standbys
from migration.keys.strategies import KEY_STRATEGIES, STANDBY_STRATEGIES

__all__ = [
    "DEFAULT_MOST_ENTRIES",
    "DEFAULT_THETA",
    "KEY_STRATEGIES",
    "STANDBY_STRATEGIES",
    "KeyCopies",
    "KeyEntries",
    "KeyEntry",
    "KeyLoads",
    "KeyMove",
    "KeyMoves",
    "KeyPlan",
    "KeyStandbys",
    "hash_standbys",
    "plan_keys",
]
