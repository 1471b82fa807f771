"""The standbys of a routing: where they are placed, and what becomes of them when tasks change their owner."""

from collections.abc import Mapping, Sequence

from elastic.routing.routing import Routing
from migration import Assignment, Ownership, ScatteredAssignment, Standbys

StandbyNodes = tuple[tuple[str, ...], ...]  # by task; empty if no task has any


def place_standbys(
    assignment: Ownership, number: int, hosts: Mapping[str, str], before: StandbyNodes = ()
) -> StandbyNodes:
    """Return the standby nodes of every task where plans have them: see `migration.Standbys.place`."""
    placed = Standbys.place(assignment, number, hosts, before)
    return placed.nodes_by_task if placed.most else ()


def carry_standbys(before: Routing, after: Ownership) -> StandbyNodes:
    """Return the standbys after tasks have changed their owner.

    If a standby became the owner, the owner before takes its place, since it has the state; if that is lost, its next
    incarnation does. Standbys on nodes that are not in the assignment any more are left out.
    """
    if not before.standbys:
        return ()
    carried = []
    for old, new, standbys in zip(before.assignment.owners, after.owners, before.standbys, strict=True):
        switched = [old if node == new else node for node in standbys]
        carried.append(tuple(node for node in switched if node in after.nodes))
    return tuple(carried)


def to_ownership(owners: Sequence[str], nodes: Sequence[str]) -> Ownership:
    """Return an assignment of intervals if every node owns one, in the order of the nodes; else a scattered one."""
    boundaries = [0]
    for node in nodes:
        boundaries.append(boundaries[-1] + owners.count(node))
    if boundaries[-1] == len(owners):
        assignment = Assignment(tuple(nodes), tuple(boundaries))
        if assignment.owners == tuple(owners):
            return assignment
    return ScatteredAssignment.from_owners(owners, nodes)
