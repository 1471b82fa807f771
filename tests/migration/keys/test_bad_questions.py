"""Every wrong question about keys gets a typed error that names the value and says what to do."""

import math
from typing import Any

import numpy as np
import pytest

from migration import (
    InvalidInput,
    InvalidWorkload,
    KeyLoads,
    UnknownNode,
    UnknownOption,
    UnknownStrategy,
    Workload,
    plan_keys,
)

LOADS = KeyLoads([1, 2, 3, 4], [0, 1, 1, 0], [0, 1, 1, 1], [1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("theta", [-0.1, math.nan, math.inf, "much", None, True])
def test_a_theta_that_is_no_overload_is_refused(theta: Any) -> None:
    with pytest.raises(InvalidInput, match=r"theta is .*Give the allowed overload"):
        plan_keys(LOADS, 2, theta)


@pytest.mark.parametrize("most_entries", [0, -1, 2.5, None, True, "many", math.nan])
def test_a_table_without_room_is_refused(most_entries: Any) -> None:
    with pytest.raises(InvalidInput, match=r"most_entries is .*Give a whole number >= 1"):
        plan_keys(LOADS, 2, most_entries=most_entries)


@pytest.mark.parametrize("nodes", [0, -3, 2.5, None, True, "three", [], ["a", "a"], [1, 2]])
def test_nodes_that_are_no_nodes_are_refused(nodes: Any) -> None:
    with pytest.raises(InvalidInput, match=r"nodes is .*Give"):
        plan_keys(LOADS, nodes)


@pytest.mark.parametrize(
    ("pinned", "message"),
    [
        ([1.0], "pinned has 1 values and there are 2 nodes"),
        ([1.0, 2.0, 3.0], "pinned has 3 values and there are 2 nodes"),
        (np.ones((2, 2)), "pinned work of node 'a' is"),
        ([0.0, -1.0], r"pinned work of node 'b' is -1\.0\. Give finite numbers"),
        ([0.0, math.nan], "pinned work of node 'b' is nan"),
        ([math.inf, 0.0], "pinned work of node 'a' is inf"),
        ([0, 10**400], "pinned work of node 'b' is 1000"),
        ([None, 0.0], "pinned work of node 'a' is None"),
        ([True, False], "pinned work of node 'a' is True"),
        (["1", "2"], "pinned work of node 'a' is '1'"),
        ([1e308, 1e308], "the sum of work and pinned work overflows"),
        ("12", "pinned is '12'"),
        (7.0, r"pinned is 7\.0"),
        (np.float64(7.0), "pinned is"),
        ({"a": 1.0, "b": 2.0}, "pinned is {'a'"),
    ],
)
def test_pinned_work_that_is_no_work_of_every_node_is_refused(pinned: Any, message: str) -> None:
    with pytest.raises(InvalidWorkload, match=message):
        plan_keys(LOADS, ["a", "b"], pinned=pinned)


def test_keys_on_nodes_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UnknownNode, match=r"node '1' .*It is the home of key 1; give indices from 0 to 0") as caught:
        plan_keys(LOADS, ["only"])
    assert caught.value.node == "1"
    loads = KeyLoads([1, 2], [0, 0], [0, 5], [1.0, 1.0])
    with pytest.raises(UnknownNode, match="current of key 1"):
        plan_keys(loads, 5)


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(UnknownStrategy, match=r"unknown key strategy 'magic'.*'knap'.*'mixed'.*'min-table'"):
        plan_keys(LOADS, 2, strategy="magic")


def test_an_option_of_another_strategy_is_refused() -> None:
    with pytest.raises(UnknownOption, match="'llfd' has no option 'beta'; it takes no options"):
        plan_keys(LOADS, 2, strategy="llfd", beta=1)
    with pytest.raises(UnknownOption, match="it takes 'beta'"):
        plan_keys(LOADS, 2, strategy="mixed", alpha=1)


@pytest.mark.parametrize("strategy", ["min-mig", "mixed", "mixed-bf"])
@pytest.mark.parametrize("beta", [-1, math.nan, math.inf, "1.5", None, True])
def test_a_beta_that_is_no_exponent_is_refused(strategy: str, beta: Any) -> None:
    with pytest.raises(InvalidInput, match=r"beta is .*Give the exponent"):
        plan_keys(LOADS, 2, strategy=strategy, beta=beta)


def test_things_that_are_no_loads_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"loads is Workload\. Give KeyLoads"):
        plan_keys(Workload.uniform(4), 2)  # type: ignore[arg-type]


def test_numpy_numbers_are_accepted() -> None:
    nodes: Any = np.int64(2)
    theta: Any = np.float32(1)
    most_entries: Any = np.int32(5)
    plan = plan_keys(LOADS, nodes, theta, "min-mig", most_entries, beta=np.int64(2))
    assert '"most_entries": 5' in plan.to_json()
