"""Plans of warm migrations: what copies save, and which copies are made for the standbys that the engine places."""

from dataclasses import replace

import pytest

from elastic.control import ScaleRequest
from elastic.control.standbys import StandbyCopies, measure_share
from elastic.core.ids import UnitId
from elastic.core.statistics import UnitStatistics
from elastic.routing import Routing
from elastic.routing.standbys import place_standbys
from migration import Assignment, Plan, Workload

WORKLOAD = Workload(work=[1.0] * 12, state=[10.0 + task for task in range(12)])
CURRENT = Assignment.even(tasks=12, nodes=3)


def copies_on_neighbours(count: int = 1) -> StandbyCopies:
    placed = place_standbys(CURRENT, count, {})
    return StandbyCopies(replace(Routing.by_hash(CURRENT), standbys=placed), placed, count, {})


def plan(copies: StandbyCopies | None, **target: object) -> Plan:
    return ScaleRequest(**{"tau": 5.0, "mode": "warm", **target}).plan(CURRENT, WORKLOAD, copies)  # type: ignore[arg-type]


@pytest.mark.parametrize("leaving", CURRENT.nodes)
def test_a_scale_in_switches_roles_only(leaving: str) -> None:
    made = plan(copies_on_neighbours(), remove=(leaving,))
    assert (made.cost, len(made.switches)) == (0, 4)
    assert plan(None, remove=(leaving,)).cost > 0


def test_standbys_are_where_the_engine_places_them() -> None:
    made = plan(copies_on_neighbours(), remove=("node-2",))
    assert made.target.owners == ("node-1",) * 6 + ("node-3",) * 6
    assert made.standbys is not None
    assert made.standbys.nodes_by_task == (("node-3",),) * 6 + (("node-1",),) * 6
    # node-2 followed tasks 0 to 3 and 8 to 11, and what it owned needs a copy, too.
    assert [(copy.task, copy.node) for copy in made.copies] == [
        (task, "node-3" if task < 6 else "node-1") for task in range(12)
    ]
    assert made.background_cost == WORKLOAD.total_state


def test_a_standby_that_has_not_caught_up_saves_nothing_and_is_still_to_be_copied() -> None:
    copies = copies_on_neighbours()
    behind = replace(copies, ready=((),) * 12)
    made = plan(behind, remove=("node-2",))
    assert made.cost == sum(move.size for move in made.moves) > 0
    assert (len(made.switches), len(made.copies)) == (0, 12)


def test_a_former_owner_that_switched_no_roles_makes_its_copy_anew() -> None:
    made = plan(copies_on_neighbours(), add=1, tau=0.0)
    assert made.standbys is not None
    former = [move for move in made.moves if move.source in made.standbys.nodes_by_task[move.task]]
    again = {(copy.task, copy.node) for copy in made.copies}
    assert any(move not in made.switches for move in former)
    for move in former:
        assert ((move.task, move.source) in again) == (move not in made.switches)


def test_one_node_that_remains_has_no_standbys() -> None:
    made = plan(copies_on_neighbours(2), nodes=1)
    assert (made.cost, made.copies, made.background_cost) == (0, (), 0)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_loads_count_the_measured_work_of_standbys_on_the_hosts_where_they_will_be(share: float) -> None:
    hosts = {"node-1": "a", "node-2": "a", "node-3": "b"}
    made = plan(replace(copies_on_neighbours(), share=share, hosts=hosts), tau=0.2)
    assert made.standbys is not None
    assert made.standbys.tasks_of("node-3") == list(range(8))
    assert made.loads == (4.0, 4 + share * 4, 4 + share * 8)
    assert made.cap == pytest.approx(1.2 * 4 * (1 + share * 2))
    assert made.reason.endswith(f"; a standby works {share:g} of what the owner of its task does, as measured")


def test_a_node_that_joins_does_not_get_all_standbys_because_its_host_is_not_known_yet() -> None:
    copies = replace(copies_on_neighbours(), share=0.5)
    on_one_host = replace(copies, hosts=dict.fromkeys(CURRENT.nodes, "a/1"))
    assert plan(on_one_host, add=2, tau=0.5) == plan(copies, add=2, tau=0.5)


def test_a_node_that_joins_is_expected_on_the_host_with_the_fewest_nodes() -> None:
    hosts = {"node-1": "a", "node-2": "a", "node-3": "b"}
    made = plan(replace(copies_on_neighbours(), hosts=hosts), add=1)
    assert made.standbys is not None
    known = place_standbys(made.target, 1, {**hosts, "node-4": "b"})
    assert made.standbys.nodes_by_task == known


def test_a_share_that_was_not_measured_is_assumed_and_the_reason_says_so() -> None:
    made = plan(copies_on_neighbours(2), tau=0.2)
    assert made.loads == pytest.approx((4 + 0.9 * 8,) * 3)
    assert made.reason.endswith(
        "works 0.9 of what the owner of its task does, assumed until steps of standbys are measured"
    )


@pytest.mark.parametrize("count", [1, 2])
def test_the_cap_of_owned_work_does_not_depend_on_what_standbys_work(count: int) -> None:
    shares = [replace(copies_on_neighbours(count), share=share) for share in (0.0, 0.3, 2.0)]
    caps = [plan(copies, tau=0.2).owned_cap_share for copies in (None, *shares)]
    assert caps == pytest.approx([1.2 / 3] * 4)


def counted(task: int, rows: int, seconds: float) -> UnitStatistics:
    return UnitStatistics(UnitId(0, task), rows, seconds)


def test_a_share_compares_seconds_by_row_and_weighs_units_by_the_work_of_their_owners() -> None:
    owned = [counted(0, 1000, 3.0), counted(1, 100, 1.0), counted(2, 50, 9.0), counted(3, 0, 5.0)]
    # Of task 0 two standbys that began at different times, 1.2 ms a row; of task 1 one, 5 ms a row; of 2 none.
    followed = [
        counted(0, 500, 0.5),
        counted(0, 250, 0.4),
        counted(1, 10, 0.05),
        counted(3, 10, 7.0),
        counted(4, 9, 7.0),
    ]
    assert measure_share(owned, followed) == pytest.approx((1000 * 0.0012 + 100 * 0.005) / 4.0)


@pytest.mark.parametrize(
    ("owned", "followed"),
    [((10, 0.04), (10, 9.0)), ((10, 9.0), (10, 0.04)), ((10, 9.0), (0, 9.0)), ((0, 9.0), (9, 9.0))],
)
def test_a_share_of_too_few_seconds_or_of_no_rows_is_not_measured(
    owned: tuple[int, float], followed: tuple[int, float]
) -> None:
    assert measure_share([counted(0, *owned)], [counted(0, *followed)]) is None
    assert measure_share([], []) is None


def test_a_plan_survives_its_document() -> None:
    for target in ({"remove": ("node-2",)}, {"add": 1, "tau": 0.0}, {"nodes": 1}):
        made = plan(copies_on_neighbours(), **target)
        assert Plan.from_json(made.to_json()) == made


@pytest.mark.parametrize(("before", "after", "moved"), [(8, 7, 12), (10, 9, 9), (10, 8, 14), (8, 6, 16)])
def test_a_balanced_scale_in_carries_no_state_where_neighbours_follow(before: int, after: int, moved: int) -> None:
    current, workload = Assignment.even(64, before), Workload.uniform(64)
    placed = place_standbys(current, 1, {})
    copies = StandbyCopies(replace(Routing.by_hash(current), standbys=placed), placed, 1, {})
    request = ScaleRequest(nodes=after, mode="warm")
    made, without = request.plan(current, workload, copies), request.plan(current, workload)
    assert (made.cost, without.cost) == (0, moved)
    assert made.balanced
    assert not made.relaxed
