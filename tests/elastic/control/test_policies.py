"""Policies as pure functions: bounded, monotone, settled on a constant load; arguments that cannot be right."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from elastic.control import POLICIES, Autoscaling, Decision, Load, Observation
from elastic.control.autoscale import Utilisation
from elastic.errors import InvalidAutoscaling, InvalidRequest, UnknownPolicy

ALLOWED = 4
shares = st.floats(0.0, 1.0)
marks = st.lists(st.integers(1, 100), min_size=3, max_size=3, unique=True).map(
    lambda three: dict(zip(("low", "aim", "high"), (mark / 100 for mark in sorted(three)), strict=True))
)


def seen(nodes: int, busy: float, ahead: float = 0.0, growth: float = 0.0) -> Observation:
    utilisation = {f"node-{number}": busy for number in range(nodes)}
    return Observation(0.0, nodes, Load(30.0, utilisation, {}, ahead, ALLOWED, growth))


@pytest.mark.parametrize("name", POLICIES)
@given(
    nodes=st.integers(1, 64),
    busy=shares,
    ahead=st.floats(0, ALLOWED),
    growth=st.floats(-1, 1),
    bounds=st.tuples(st.integers(1, 64), st.integers(1, 64)).map(sorted),
)
def test_a_target_is_never_outside_the_floor_and_the_ceiling(
    name: str, nodes: int, busy: float, ahead: float, growth: float, bounds: list[int]
) -> None:
    floor, ceiling = bounds
    wish = Autoscaling.of(64, policy=name, floor=floor, ceiling=ceiling).wish(seen(nodes, busy, ahead, growth))
    assert floor <= wish.target <= ceiling
    assert wish.reason


@given(st.integers(1, 64), shares, shares, st.floats(0, ALLOWED), st.floats(-1, 1), marks)
def test_more_load_never_means_fewer_nodes(
    nodes: int, one: float, other: float, ahead: float, growth: float, options: dict[str, float]
) -> None:
    less, more = sorted((one, other))
    policy = Utilisation(**options)
    fewer = policy.decide(seen(nodes, less, ahead, growth)).target
    assert fewer <= policy.decide(seen(nodes, more, ahead, growth)).target
    assert policy.decide(seen(nodes, less)).target <= fewer


@given(st.floats(0.0, 40.0), st.integers(1, 64), st.integers(0, 64), marks)
def test_a_constant_load_is_settled_for_good(
    demand: float, start: int, queue_below: int, options: dict[str, float]
) -> None:
    """`demand` nodes' worth of work, and a queue while there are fewer than `queue_below` nodes, or too few for it."""
    asked, nodes = Autoscaling.of(64, ceiling=64, policy=Utilisation(**options)), start
    counts = [nodes]
    for _ in range(200):
        queue = nodes < max(queue_below, demand)
        nodes = asked.wish(seen(nodes, min(1.0, demand / nodes), ALLOWED if queue else 0.0)).target
        counts.append(nodes)
    assert counts[-1] == counts[-2]
    settled = counts[: counts.index(counts[-1]) + 1]
    assert len(set(settled)) == len(settled), f"flapped: {counts}"
    turns = [(after > before) for before, after in pairwise(settled)]
    assert turns == sorted(turns), f"nodes left after some had joined: {counts}"


@given(st.floats(0.0, 40.0), st.integers(1, 64), marks)
def test_a_load_without_a_queue_that_is_not_saturated_is_answered_once(
    demand: float, nodes: int, options: dict[str, float]
) -> None:
    assume(demand < nodes)
    policy = Utilisation(**options)
    target = policy.decide(seen(nodes, demand / nodes)).target
    assume(demand < target)
    assert policy.decide(seen(target, demand / target)).target == target


def test_between_the_marks_a_job_is_left_alone() -> None:
    assert [Utilisation().decide(seen(4, busy)).target for busy in (0.31, 0.5, 0.79)] == [4, 4, 4]


def test_beyond_the_marks_the_aim_is_met() -> None:
    assert Utilisation().decide(seen(4, 0.9)).target == 6
    assert Utilisation().decide(seen(2, 1.0)).target == 4
    assert Utilisation().decide(seen(8, 0.15)).target == 2
    assert Utilisation().decide(seen(8, 0.0)).target == 1


@pytest.mark.parametrize(("ahead", "growth"), [(3.5, 0.0), (1.5, 0.2)])
def test_a_queue_that_is_full_or_soon_will_be_adds_a_node(ahead: float, growth: float) -> None:
    decision = Utilisation().decide(seen(2, 0.7, ahead, growth))
    assert decision.target == 3
    assert "wait" in decision.reason


def test_a_queue_before_idle_nodes_adds_none_and_keeps_those_there_are() -> None:
    decision = Utilisation().decide(seen(4, 0.1, ahead=4.0))
    assert decision.target == 4
    assert "more would not help" in decision.reason


def test_a_reason_has_the_numbers_and_the_bound_that_was_met() -> None:
    wish = Autoscaling.of(64, ceiling=3).wish(seen(2, 0.95))
    assert wish == Decision(3, "nodes are busy 95% of the time, above the high mark 80%; the ceiling is 3")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"floor": 0}, "floor"),
        ({"floor": 1.5}, "floor"),
        ({"floor": 5}, "ceiling"),
        ({"ceiling": 9}, "ceiling"),
        ({"ceiling": True}, "ceiling"),
        ({"low": 0.7}, "aim"),
        ({"high": 0.5}, "aim"),
        ({"high": 1.5}, "high"),
        ({"low": 0}, "low"),
        ({"low": "0.1"}, "low"),
        ({"window_seconds": 0.5}, "window_seconds"),
        ({"window_seconds": 3600}, "window_seconds"),
        ({"window_seconds": float("nan")}, "window_seconds"),
        ({"cool_down_seconds": -1}, "cool_down_seconds"),
        ({"cool_down_seconds": float("inf")}, "cool_down_seconds"),
        ({"cool_down_seconds": "60"}, "cool_down_seconds"),
        ({"hihg": 0.9}, "hihg"),
        ({"scaling": {"nodes": 3}}, "scaling['nodes']"),
        ({"scaling": {"speed": 3}}, "scaling['speed']"),
        ({"policy": Utilisation(), "low": 0.1}, "low"),
    ],
)
def test_arguments_that_cannot_be_right_are_refused_by_name(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidAutoscaling) as refused:
        Autoscaling.of(**{"tasks": 8, "ceiling": 4, **wrong})
    assert refused.value.name == name


def test_a_policy_that_is_not_there_is_refused_and_the_nearest_one_is_named() -> None:
    with pytest.raises(UnknownPolicy, match="Did you mean 'utilisation'"):
        Autoscaling.of(8, ceiling=4, policy="utilization")
    with pytest.raises(UnknownPolicy, match="decide"):
        Autoscaling.of(8, ceiling=4, policy=7)  # type: ignore[arg-type]


def test_a_way_to_move_that_cannot_be_right_is_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidRequest):
        Autoscaling.of(8, ceiling=4, scaling={"mode": "fast"})
    request = Autoscaling.of(8, ceiling=4, scaling={"mode": "live", "tau": 0.5}).request(3)
    assert (request.nodes, request.mode, request.tau, request.relax) == (3, "live", 0.5, True)


def test_a_decision_for_half_a_node_is_refused() -> None:
    with pytest.raises(InvalidAutoscaling):
        Decision(1.5, "a half")  # type: ignore[arg-type]
