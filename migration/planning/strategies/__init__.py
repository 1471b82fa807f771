"""One strategy per file; a new one needs a file here and an entry in `STRATEGIES`."""

from collections.abc import Callable, Mapping

from migration.planning.problem import Proposal
from migration.planning.strategies.consistent_hash import consistent_hash
from migration.planning.strategies.even import even
from migration.planning.strategies.mtm import mtm
from migration.planning.strategies.ssm import ssm

STRATEGIES: Mapping[str, Callable[..., Proposal]] = {
    "ssm": ssm,
    "mtm": mtm,
    "even": even,
    "consistent-hash": consistent_hash,
}

__all__ = ["STRATEGIES", "Proposal"]
