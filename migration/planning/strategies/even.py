"""Storm's scheduler as a baseline: the same number of consecutive tasks for every node."""

from migration.model.assignment import Assignment
from migration.planning.problem import Problem
from migration.planning.strategies.proposal import Proposal


def even(problem: Problem) -> Proposal:
    """Interval i of an equal split goes to node i: it looks neither at work, nor at state, nor at who has what.

    When nodes must go and none is named, the last ones leave. The cap is reported, not kept. O(n').
    """
    nodes = (*problem.staying, *problem.joining)[: problem.node_count]
    return Proposal(
        Assignment.even(problem.workload.tasks, nodes), "equal task counts in node order, whatever they weigh"
    )
