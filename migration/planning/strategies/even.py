"""Storm's scheduler as a baseline: the same number of consecutive tasks for every node."""

from migration.model.assignment import Assignment
from migration.planning.problem import Problem, Proposal


def even(problem: Problem) -> Proposal:
    """Give interval i of an equal split to node i, regardless of work, state and current owners.

    When nodes must leave and none is named, the last ones do. The cap is reported, not enforced. O(n').
    """
    nodes = (*problem.staying, *problem.joining)[: problem.node_count]
    return Proposal(
        Assignment.even(problem.workload.tasks, nodes), "equal task counts in node order, whatever they weigh"
    )
