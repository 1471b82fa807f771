"""TaskB (paper 002, section 5.1.2): the standby of a node is a whole other node."""

from dataclasses import replace

import numpy as np

from migration.keys.problem import KeyProblem, KeyProposal
from migration.keys.standbys import NOWHERE, NodeRows
from migration.keys.strategies.ftlb import refuse_standby_excess
from migration.keys.strategies.min_mig import DEFAULT_BETA
from migration.keys.strategies.mixed import mixed


def task_b(problem: KeyProblem, beta: float = DEFAULT_BETA) -> KeyProposal:
    """Balance with Mixed, and let every node have all keys of the node before it as standbys.

    So standbys move whenever their keys do. All keys have one standby, whatever the service level says; none without
    standbys.
    """
    proposal = mixed(replace(problem, standbys=None), beta)
    if problem.standbys is None:
        return proposal
    if problem.node_count == 1:
        return proposal._replace(standbys=problem.start)
    standbys: NodeRows = np.full((problem.loads.keys, max(problem.start.shape[1], 1)), NOWHERE, np.int32)
    standbys[:, 0] = (proposal.destination + 1) % problem.node_count
    refuse_standby_excess(problem, proposal.destination, standbys)
    return proposal._replace(standbys=standbys)
