"""MinMig (paper 000, algorithm 3): little state moves, whatever the size of the routing table."""

from migration.errors import InvalidInput
from migration.keys.loads import is_amount
from migration.keys.problem import KeyProblem, KeyProposal
from migration.keys.strategies.llfd import rebalance_from

DEFAULT_BETA = 1.5  # the paper's default: work counts more than state, which keeps the table smaller


def min_mig(problem: KeyProblem, beta: float = DEFAULT_BETA) -> KeyProposal:
    """Take keys from overloaded nodes by the largest gamma(k) = c(k)^beta / S(k) and place them with LLFD."""
    destination = rebalance_from(problem, problem.loads.current, check_beta(beta))
    return KeyProposal(destination, f"keys of overloaded nodes by work^{beta:g} per state, to the least loaded")


def check_beta(beta: float) -> float:
    """Return beta as a float; raise for NaN, infinity and negative values."""
    if not is_amount(beta):
        raise InvalidInput(f"beta is {beta!r}. Give the exponent of work in work^beta / state, a number >= 0.")
    return float(beta)
