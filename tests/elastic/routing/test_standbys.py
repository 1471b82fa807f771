"""Standbys of a routing: where they are placed, and what becomes of them when tasks change their owner."""

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
