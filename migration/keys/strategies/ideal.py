"""Ideal (paper 000, Figure 13): shuffle rows regardless of their keys. A bound on balance, not a plan."""

from typing import NoReturn

import numpy as np

from migration.errors import InvalidInput
from migration.keys.loads import Floats
from migration.keys.problem import KeyProblem


def ideal_loads(problem: KeyProblem) -> Floats:
    """The work of every node if rows were shuffled: W / N on each, whatever the keys, with no state to move.

    No plan by key is more balanced. A stateful operator cannot run like that, because a key's rows meet everywhere.
    """
    return np.full(problem.node_count, problem.mean)


def ideal(problem: KeyProblem) -> NoReturn:
    """Refuse: there is no node for a key whose rows go to all nodes."""
    raise InvalidInput(
        f"strategy 'ideal' is a bound, not a plan: it shuffles rows regardless of their keys, so that each of "
        f"{problem.node_count} nodes carries {problem.mean:g}. Draw it with ideal_loads(), and plan with 'knap'."
    )
