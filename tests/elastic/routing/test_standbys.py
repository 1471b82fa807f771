"""Places of standbys: never with the owner, on neighbours, on other hosts, and spread where tasks are scattered."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastic.routing import Groupings, Routing
from elastic.routing.standbys import carry_standbys, place_standbys, to_ownership
from migration import Assignment, Ownership, ScatteredAssignment


@st.composite
def ownerships(draw: st.DrawFn) -> Ownership:
    nodes = [f"node-{number}" for number in range(1, draw(st.integers(1, 6)) + 1)]
    owners = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=24))
    return to_ownership(sorted(owners) if draw(st.booleans()) else owners, nodes)


HOSTS = st.dictionaries(st.sampled_from([f"node-{number}" for number in range(1, 7)]), st.sampled_from(["a", "b", "c"]))


@given(ownerships(), st.integers(0, 3), HOSTS)
def test_every_task_has_its_standbys_and_none_on_its_own_node(
    assignment: Ownership, number: int, hosts: dict[str, str]
) -> None:
    placed = place_standbys(assignment, number, hosts)
    Routing(assignment, Groupings(assignment.tasks), standbys=placed)  # the constructor checks it
    assert len(placed) in (0, assignment.tasks)
    assert all(len(nodes) == min(number, len(assignment.nodes) - 1) for nodes in placed)


@given(ownerships(), st.integers(1, 3), HOSTS)
def test_a_standby_is_on_another_host_if_there_is_one(
    assignment: Ownership, number: int, hosts: dict[str, str]
) -> None:
    placed = place_standbys(assignment, number, hosts)
    for owner, nodes in zip(assignment.owners, placed, strict=False):
        others = [node for node in assignment.nodes if hosts.get(node) != hosts.get(owner) and node != owner]
        if owner in hosts and others:
            assert hosts.get(nodes[0]) != hosts[owner]


def test_the_tasks_that_a_node_has_in_either_role_are_an_interval() -> None:
    assignment = Assignment.even(64, 8)
    for number in (1, 2):
        placed = place_standbys(assignment, number, {})
        for node in assignment.nodes:
            tasks = [task for task in range(64) if node in (assignment.owners[task], *placed[task])]
            assert tasks == list(range(tasks[0], tasks[-1] + 1))


def test_a_lost_node_leaves_half_of_its_tasks_to_each_neighbour() -> None:
    placed = place_standbys(Assignment.even(64, 4), 1, {})
    assert Counter(nodes[0] for nodes in placed[16:32]) == {"node-1": 8, "node-3": 8}
    assert {nodes[0] for nodes in placed[:16]} == {"node-2"}


def test_standbys_of_scattered_tasks_are_on_many_nodes_and_stay_where_they_are() -> None:
    assignment = ScatteredAssignment.from_owners(
        [f"node-{task % 4}" for task in range(64)], [f"node-{n}" for n in range(4)]
    )
    placed = place_standbys(assignment, 1, {})
    of_one = Counter(placed[task][0] for task in range(0, 64, 4))
    assert set(of_one) == {"node-1", "node-2", "node-3"}
    before = tuple(("node-0" if task % 4 else "node-1",) for task in range(64))
    assert place_standbys(assignment, 1, {}, before) == before


def test_a_standby_that_becomes_the_owner_leaves_its_place_to_the_owner_before() -> None:
    before = Routing(Assignment.even(2, 2), Groupings(2), 1, (("node-2",), ("node-1",)))
    after = to_ownership(["node-2", "node-2"], ["node-1", "node-2"])
    assert carry_standbys(before, after) == (("node-1",), ("node-1",))
    assert carry_standbys(before, to_ownership(["node-2", "node-2"], ["node-2"])) == ((), ())
    assert carry_standbys(Routing.by_hash(Assignment.even(2, 2)), after) == ()


@pytest.mark.parametrize(
    ("owners", "kind"), [("aabb", Assignment), ("abba", ScatteredAssignment), ("bbaa", ScatteredAssignment)]
)
def test_owners_in_the_order_of_the_nodes_are_intervals(owners: str, kind: type[Ownership]) -> None:
    found = to_ownership(list(owners), ["a", "idle", "b"])
    assert isinstance(found, kind)
    assert found.owners == tuple(owners)
