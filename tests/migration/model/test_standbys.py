"""Places of standbys: never with the owner, on neighbours, on other hosts, and spread where tasks are scattered."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migration import Assignment, Ownership, ScatteredAssignment, Standbys
from migration.model.standbys import follower_shares

HOSTS = st.dictionaries(st.sampled_from([f"node-{number}" for number in range(1, 7)]), st.sampled_from(["a", "b", "c"]))

PLACES = st.dictionaries(
    st.sampled_from([f"node-{number}" for number in range(1, 7)]), st.sampled_from(["a/1", "a/2", "b/1", "b/2", "b"])
)


@st.composite
def ownerships(draw: st.DrawFn) -> Ownership:
    nodes = [f"node-{number}" for number in range(1, draw(st.integers(1, 6)) + 1)]
    if draw(st.booleans()):
        cuts = sorted(draw(st.lists(st.integers(0, 24), min_size=len(nodes) - 1, max_size=len(nodes) - 1)))
        return Assignment(tuple(nodes), (0, *cuts, 24))
    return ScatteredAssignment.from_owners(draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=24)), nodes)


@given(ownerships(), st.integers(0, 7), HOSTS)
def test_every_task_has_its_standbys_and_none_on_its_own_node(
    ownership: Ownership, count: int, hosts: dict[str, str]
) -> None:
    placed = Standbys.place(ownership, count, hosts)
    placed.check_apart(ownership)
    assert {len(nodes) for nodes in placed.nodes_by_task} == {min(count, len(ownership.nodes) - 1)}
    assert Standbys.from_dict(placed.to_dict()) == placed


@given(ownerships(), st.integers(1, 3), PLACES)
def test_a_standby_is_on_another_host_and_else_in_another_executor_if_there_is_one(
    ownership: Ownership, count: int, places: dict[str, str]
) -> None:
    placed = Standbys.place(ownership, count, places)
    for owner, nodes in zip(ownership.owners, placed.nodes_by_task, strict=True):
        if owner not in places:
            continue
        host = places[owner].partition("/")[0]
        near = {node for node in ownership.nodes if places.get(node, "").partition("/")[0] == host}
        same = {node for node in ownership.nodes if places.get(node) == places[owner]}
        kinds = [(node in near) + (node in same) for node in nodes]
        every = sorted((node in near) + (node in same) for node in ownership.nodes if node != owner)
        assert kinds == every[: len(nodes)]


@given(ownerships(), st.integers(1, 3), HOSTS)
def test_a_standby_is_on_another_host_if_there_is_one(ownership: Ownership, count: int, hosts: dict[str, str]) -> None:
    placed = Standbys.place(ownership, count, hosts)
    for owner, nodes in zip(ownership.owners, placed.nodes_by_task, strict=True):
        others = {node for node in ownership.nodes if hosts.get(node) != hosts.get(owner)}
        if owner in hosts:
            assert sum(node in others for node in nodes) == min(len(nodes), len(others))
            assert all(node in others for node in nodes[: len(others)])


def test_all_other_nodes_follow_once_if_some_share_the_owners_host() -> None:
    placed = Standbys.place(Assignment.even(6, 3), 2, {"node-1": "a", "node-2": "a", "node-3": "b"}).nodes_by_task
    assert placed == (*[("node-3", "node-2")] * 2, *[("node-3", "node-1")] * 2, *[("node-2", "node-1")] * 2)


@given(st.integers(1, 9), st.integers(0, 12))
def test_with_an_even_number_of_standbys_every_node_follows_as_many_as_follow_it(nodes: int, count: int) -> None:
    current = Assignment.even(2 * nodes, nodes)
    standbys, wanted = Standbys.place(current, count), min(count, nodes - 1)
    followed = [len(standbys.tasks_of(name)) for name in current.nodes]
    assert standbys.most == wanted
    assert sum(followed) == 2 * nodes * wanted
    if wanted % 2 == 0 or wanted == nodes - 1:
        assert set(followed) == {2 * wanted}


@pytest.mark.parametrize("nodes", range(3, 12))
def test_one_standby_is_where_the_task_would_be_if_its_owner_left_and_all_were_shared_evenly_again(nodes: int) -> None:
    current = Assignment.even(nodes * (nodes - 1), nodes)
    placed = Standbys.place(current, 1)
    for node in current.nodes:
        others = tuple(name for name in current.nodes if name != node)
        without = Assignment(others, Assignment.even(current.tasks, nodes - 1).boundaries)
        for task in current.tasks_of(node):
            assert placed.nodes_by_task[task] == (without.owners[task],)
    assert max(len(placed.tasks_of(node)) for node in current.nodes) <= nodes + 1  # of nodes - 1 that it owns


@pytest.mark.parametrize("nodes", range(2, 12))
def test_the_tasks_that_a_node_has_in_either_role_are_an_interval(nodes: int) -> None:
    current = Assignment.even(64, nodes)
    placed = Standbys.place(current, 1)
    spans = []
    for node in current.nodes:
        tasks = sorted([*current.tasks_of(node), *placed.tasks_of(node)])
        assert tasks == list(range(tasks[0], tasks[-1] + 1))
        spans.append((tasks[0], tasks[-1]))
    assert all(first[0] <= second[0] and first[1] <= second[1] for first, second in pairwise(spans))


def test_a_lost_node_leaves_its_tasks_to_two_neighbours() -> None:
    placed = Standbys.place(Assignment.even(64, 4), 1).nodes_by_task
    assert Counter(nodes[0] for nodes in placed[16:32]) == {"node-1": 5, "node-3": 11}
    assert {nodes[0] for nodes in placed[:16]} == {"node-2"}
    both = Standbys.place(Assignment.even(64, 4), 2).nodes_by_task
    assert Counter(both[16:32]) == {("node-1", "node-3"): 5, ("node-3", "node-1"): 11}
    assert set(both[:16]) == {("node-2", "node-4")}


def test_standbys_of_scattered_tasks_are_on_many_nodes_and_stay_where_they_are() -> None:
    names = [f"node-{number}" for number in range(4)]
    ownership = ScatteredAssignment.from_owners([f"node-{task % 4}" for task in range(64)], names)
    placed = Standbys.place(ownership, 1).nodes_by_task
    assert {placed[task][0] for task in range(0, 64, 4)} == {"node-1", "node-2", "node-3"}
    before = tuple(("node-0" if task % 4 else "node-1",) for task in range(64))
    assert Standbys.place(ownership, 1, {}, before).nodes_by_task == before
    invalid = tuple((f"node-{task % 4}", "gone") for task in range(64))
    assert Standbys.place(ownership, 1, {}, invalid).nodes_by_task == placed


@given(st.integers(1, 9), st.integers(0, 12))
def test_shares_of_followers_are_those_of_placed_standbys(nodes: int, count: int) -> None:
    tasks = max(1, nodes - 1)
    current = Assignment.even(tasks * nodes, nodes)
    followed = dict.fromkeys(current.nodes, 0.0)
    for offset, shares in follower_shares(count, nodes).items():
        for place, share in enumerate(shares):
            followed[current.nodes[(place + offset) % nodes]] += share * tasks
    placed = Standbys.place(current, count)
    assert {node: len(placed.tasks_of(node)) for node in current.nodes} == pytest.approx(followed)
