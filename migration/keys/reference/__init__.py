"""Every strategy once more, in plain Python: what the tests compare the compiled loops with.

A reference adds up loads in the same order as its compiled twin, so that both agree to the last bit.
"""

from collections.abc import Callable, Mapping

from migration.keys.problem import KeyProposal
from migration.keys.reference.knap import knap
from migration.keys.reference.mixed import mixed, mixed_bf
from migration.keys.reference.one_shot import llfd, min_mig, min_table, simple
from migration.keys.reference.readj import readj
from migration.keys.reference.standbys import ftlb, switch_first

REFERENCES: Mapping[str, Callable[..., KeyProposal]] = {
    "simple": simple,
    "llfd": llfd,
    "min-table": min_table,
    "min-mig": min_mig,
    "mixed": mixed,
    "mixed-bf": mixed_bf,
    "knap": knap,
    "readj": readj,
    "ftlb": ftlb,
    "switch-first": switch_first,
}

__all__ = ["REFERENCES"]
