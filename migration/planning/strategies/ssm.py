"""Single-step migration (paper 003, section 3): the cheapest balanced reassignment."""

from migration.kernels import Ints
from migration.model.assignment import Assignment
from migration.model.plan import RELATIVE_EPSILON
from migration.planning import balance
from migration.planning.copies import choose_partition
from migration.planning.owners import assign_owners, fill_owners
from migration.planning.problem import Problem, Proposal
from migration.planning.search import best_partition


def ssm(problem: Problem) -> Proposal:
    """Maximise the state that stays, the sum over nodes i of |I_i and I'_i|, with every W(I'_i) within the cap.

    The exact optimum of Definition 3.2, for more, fewer or as many nodes, in O(n' * band * (1 + old intervals per
    window)) for a band of about tau * m positions. From an assignment without intervals, as a cancelled migration
    leaves it, it is the best of those in which every node keeps tasks of its heaviest run only. With standbys a node
    keeps all that it holds; see `migration.planning.copies`.
    """
    if _is_balanced_already(problem):
        return Proposal(problem.current, "already balanced: nothing moves")
    first = balance.earliest_starts(problem.workload, problem.cap)
    if problem.standbys is not None:
        return _plan_with_copies(problem, first)
    old, gain = problem.old_boundaries(), problem.gain_prefix()
    parts = min(problem.node_count, problem.workload.tasks)
    boundaries = best_partition(problem.workload.work_prefix, gain, first, old, parts, problem.allow_idle)
    if boundaries is None:
        raise balance.infeasible_error(problem.workload, problem.node_count, problem.tau)
    reason = "the least state that any balanced assignment moves"
    if not problem.is_contiguous:
        reason += ", if every node keeps one of its runs of tasks at most"
    return Proposal(assign_owners(problem, boundaries, old, gain), reason)


def _plan_with_copies(problem: Problem, first: Ints) -> Proposal:
    choice = choose_partition(problem, first)
    if choice is None:
        raise balance.infeasible_error(problem.workload, problem.node_count, problem.tau)
    reason = "the least state on the critical path of any balanced assignment"
    if not choice.is_proven:
        reason += ", if nodes stay in the order of their longest runs of tasks"
    names = (*problem.staying, *problem.joining)
    keepers = [names[owner] if owner >= 0 else None for owner in choice.owners]
    return Proposal(fill_owners(problem, choice.boundaries, keepers), reason)


def _is_balanced_already(problem: Problem) -> bool:
    """Same nodes, all of them at work and within the cap. Ties could otherwise move tasks whose state is empty."""
    current = problem.current
    if (
        problem.staying != current.nodes
        or problem.node_count != len(current.nodes)
        or not isinstance(current, Assignment)
    ):
        return False
    if not problem.allow_idle and 0 in current.lengths:
        return False
    work = problem.workload.work_prefix[list(current.boundaries)]
    return bool((work[1:] - work[:-1]).max() <= problem.cap * (1 + RELATIVE_EPSILON))
