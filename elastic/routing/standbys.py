"""Where standbys are: on other nodes than their owner, and on other hosts where there are some.

Where nodes own intervals of tasks, standbys are on the neighbours: the first half of an interval on the node before,
the second half on the node behind. So the tasks that a node has, in either role, are an interval again, a lost node's
work goes to two others, and an interval moves to a neighbour for nothing. Where tasks are scattered, a second hash of
the task chooses among all nodes: rows of one node's tasks then go to many.
"""

import zlib
from collections.abc import Mapping, Sequence

from elastic.routing.routing import Routing
from migration import Assignment, Ownership, ScatteredAssignment

Standbys = tuple[tuple[str, ...], ...]  # by task; empty if no task has any


def place_standbys(assignment: Ownership, number: int, hosts: Mapping[str, str], before: Standbys = ()) -> Standbys:
    """Return that many standby nodes of every task, the preferred one first; fewer if there are too few nodes.

    `hosts` names the host of a node, as far as it is known. Where tasks are scattered, valid standbys of `before` stay.
    """
    number = min(number, len(assignment.nodes) - 1)
    if number <= 0:
        return ()
    placed = []
    for task, owner in enumerate(assignment.owners):
        if isinstance(assignment, Assignment):
            candidates = _neighbours(assignment, task, owner)
        else:
            known = before[task] if before else ()
            candidates = [node for node in known if node in assignment.nodes and node != owner]
            candidates += [node for node in _shuffle(assignment.nodes, task) if node not in (owner, *candidates)]
        candidates.sort(key=lambda node: node in hosts and hosts[node] == hosts.get(owner))
        placed.append(tuple(candidates[:number]))
    return tuple(placed)


def carry_standbys(before: Routing, after: Ownership) -> Standbys:
    """Return the standbys after tasks have changed their owner.

    If a standby became the owner, the owner before takes its place, since it has the state; if that is lost, its next
    incarnation does. Standbys on nodes that are not in the assignment any more are left out.
    """
    if not before.standbys:
        return ()
    carried = []
    for old, new, standbys in zip(before.assignment.owners, after.owners, before.standbys, strict=True):
        switched = [old if node == new else node for node in standbys]
        carried.append(tuple(node for node in switched if node in after.nodes and node != new))
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


def _neighbours(assignment: Assignment, task: int, owner: str) -> list[str]:
    """Return the other nodes by their distance from the owner, first on the side where the task is."""
    index = assignment.nodes.index(owner)
    start, stop = assignment.boundaries[index : index + 2]
    is_behind = 2 * (task - start) + 1 > stop - start
    others = (other for other in range(len(assignment.nodes)) if other != index)
    nearest = sorted(others, key=lambda other: (abs(other - index), (other > index) != is_behind))
    return [assignment.nodes[other] for other in nearest]


def _shuffle(nodes: Sequence[str], task: int) -> list[str]:
    return sorted(nodes, key=lambda node: zlib.crc32(f"{task} {node}".encode()))
