"""MinTable (paper 000, algorithm 2): a small routing table, whatever moves."""

from migration.keys.problem import KeyProblem, KeyProposal
from migration.keys.strategies.llfd import rebalance_from


def min_table(problem: KeyProblem) -> KeyProposal:
    """Move all keys back home, then take keys from overloaded nodes by highest work and place them with LLFD."""
    return KeyProposal(
        rebalance_from(problem, problem.loads.home), "all entries moved back, then the keys with the highest work moved"
    )
