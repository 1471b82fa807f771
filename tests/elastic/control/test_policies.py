"""Policies as pure functions: bounded, monotone, stable under a constant load; invalid arguments."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from elastic.control import POLICIES, AutoscalerSettings, Decision, Load, Observation
from elastic.control.autoscale import Imbalance, Utilisation
from elastic.errors import InvalidAutoscaling, InvalidRequest, UnknownPolicy

MAX_PENDING = 4
fractions = st.floats(0.0, 1.0)
thresholds = st.lists(st.integers(1, 100), min_size=3, max_size=3, unique=True).map(
    lambda three: dict(zip(("low", "aim", "high"), (percent / 100 for percent in sorted(three)), strict=True))
)


def observe(nodes: int, busy: float, pending: float = 0.0, growth: float = 0.0) -> Observation:
    utilisation = {f"node-{number}": busy for number in range(nodes)}
    return Observation(0.0, nodes, Load(30.0, utilisation, {}, pending, MAX_PENDING, growth))


@pytest.mark.parametrize("name", POLICIES)
@given(
    nodes=st.integers(1, 64),
    busy=fractions,
    pending=st.floats(0, MAX_PENDING),
    growth=st.floats(-1, 1),
    bounds=st.tuples(st.integers(1, 64), st.integers(1, 64)).map(sorted),
)
def test_a_target_is_never_outside_the_floor_and_the_ceiling(
    name: str, nodes: int, busy: float, pending: float, growth: float, bounds: list[int]
) -> None:
    floor, ceiling = bounds
    decision = AutoscalerSettings.from_arguments(64, policy=name, floor=floor, ceiling=ceiling).decide(
        observe(nodes, busy, pending, growth)
    )
    assert floor <= decision.target <= ceiling
    assert decision.reason


@given(st.integers(1, 64), fractions, fractions, st.floats(0, MAX_PENDING), st.floats(-1, 1), thresholds)
def test_more_load_never_leads_to_fewer_nodes(
    nodes: int, one: float, other: float, pending: float, growth: float, options: dict[str, float]
) -> None:
    less, more = sorted((one, other))
    policy = Utilisation(**options)
    fewer = policy.decide(observe(nodes, less, pending, growth)).target
    assert fewer <= policy.decide(observe(nodes, more, pending, growth)).target
    assert policy.decide(observe(nodes, less)).target <= fewer


@given(st.floats(0.0, 40.0), st.integers(1, 64), st.integers(0, 64), thresholds)
def test_a_constant_load_leads_to_a_stable_node_count(
    demand: float, start: int, queue_below: int, options: dict[str, float]
) -> None:
    """The load is the work of `demand` nodes, with a queue below `queue_below` nodes and below `demand` nodes."""
    settings, nodes = AutoscalerSettings.from_arguments(64, ceiling=64, policy=Utilisation(**options)), start
    counts = [nodes]
    for _ in range(200):
        queue = nodes < max(queue_below, demand)
        nodes = settings.decide(observe(nodes, min(1.0, demand / nodes), MAX_PENDING if queue else 0.0)).target
        counts.append(nodes)
    assert counts[-1] == counts[-2]
    settled = counts[: counts.index(counts[-1]) + 1]
    assert len(set(settled)) == len(settled), f"flapped: {counts}"
    increases = [(after > before) for before, after in pairwise(settled)]
    assert increases == sorted(increases), f"nodes were removed after some were added: {counts}"


@given(st.floats(0.0, 40.0), st.integers(1, 64), thresholds)
def test_one_decision_answers_a_load_without_queue_or_saturation(
    demand: float, nodes: int, options: dict[str, float]
) -> None:
    assume(demand < nodes)
    policy = Utilisation(**options)
    target = policy.decide(observe(nodes, demand / nodes)).target
    assume(demand < target)
    assert policy.decide(observe(target, demand / target)).target == target


def test_between_the_thresholds_the_node_count_stays() -> None:
    assert [Utilisation().decide(observe(4, busy)).target for busy in (0.31, 0.5, 0.79)] == [4, 4, 4]


def test_beyond_the_thresholds_the_target_utilisation_is_met() -> None:
    assert Utilisation().decide(observe(4, 0.9)).target == 6
    assert Utilisation().decide(observe(2, 1.0)).target == 4
    assert Utilisation().decide(observe(8, 0.15)).target == 2
    assert Utilisation().decide(observe(8, 0.0)).target == 1


@pytest.mark.parametrize(("pending", "growth"), [(3.5, 0.0), (1.5, 0.2)])
def test_a_queue_that_is_full_or_will_be_soon_adds_a_node(pending: float, growth: float) -> None:
    decision = Utilisation().decide(observe(2, 0.7, pending, growth))
    assert decision.target == 3
    assert "pending" in decision.reason


def test_a_queue_in_front_of_idle_nodes_changes_nothing() -> None:
    decision = Utilisation().decide(observe(4, 0.1, pending=4.0))
    assert decision.target == 4
    assert "more nodes would not help" in decision.reason


def test_a_reason_has_the_numbers_and_the_bound_that_applied() -> None:
    decision = AutoscalerSettings.from_arguments(64, ceiling=3).decide(observe(2, 0.95))
    assert decision == Decision(3, "utilisation 95% is above the high threshold 80%; the ceiling is 3")


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
def test_an_error_names_the_invalid_argument(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidAutoscaling) as refused:
        AutoscalerSettings.from_arguments(**{"tasks": 8, "ceiling": 4, **wrong})
    assert refused.value.name == name


def test_an_unknown_policy_is_refused_with_the_closest_name() -> None:
    with pytest.raises(UnknownPolicy, match="Did you mean 'utilisation'"):
        AutoscalerSettings.from_arguments(8, ceiling=4, policy="utilization")
    with pytest.raises(UnknownPolicy, match="decide"):
        AutoscalerSettings.from_arguments(8, ceiling=4, policy=7)  # type: ignore[arg-type]


def test_invalid_scaling_arguments_are_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidRequest):
        AutoscalerSettings.from_arguments(8, ceiling=4, scaling={"mode": "fast"})
    request = AutoscalerSettings.from_arguments(8, ceiling=4, scaling={"mode": "live", "tau": 0.5}).request(3)
    assert (request.nodes, request.mode, request.tau, request.relax) == (3, "live", 0.5, True)


def test_a_decision_for_a_fraction_of_a_node_is_refused() -> None:
    with pytest.raises(InvalidAutoscaling):
        Decision(1.5, "one and a half")  # type: ignore[arg-type]


def observe_nodes(*busy: float) -> Observation:
    utilisation = {f"node-{number}": share for number, share in enumerate(busy)}
    return Observation(0.0, len(busy), Load(30.0, utilisation, {}, 0.0, MAX_PENDING, 0.0))


def test_a_busiest_node_far_above_the_mean_calls_for_moves_of_keys_and_not_for_nodes() -> None:
    decision = Imbalance(theta=0.2, stage="count").decide(observe_nodes(0.9, 0.4, 0.4))
    assert decision.target == 3
    assert decision.rebalance is not None
    assert (decision.rebalance.theta, decision.rebalance.stage) == (0.1, "count")
    assert decision.reason == "node-0 is 59% busier than the mean, above theta 20%"


@pytest.mark.parametrize(
    ("why", "busy"),
    [
        ("balanced", (0.5, 0.45, 0.55)),
        ("too much work, however it is spread", (1.0, 0.55, 0.9)),
        ("too little work to matter", (0.2, 0.02, 0.02)),
    ],
)
def test_keys_stay_where_moving_them_gains_nothing(why: str, busy: tuple[float, ...]) -> None:
    observation = observe_nodes(*busy)
    assert Imbalance(theta=0.2).decide(observation) == Utilisation().decide(observation), why


@pytest.mark.parametrize("options", [{"theta": 0}, {"theta": "much"}, {"idle": -1}, {"low": 2}])
def test_an_imbalance_policy_refuses_values_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidAutoscaling):
        AutoscalerSettings.from_arguments(8, policy="imbalance", ceiling=4, **options)
