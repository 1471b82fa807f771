"""The choice between moving tasks and moving keys: the cheaper plan that balances, else the one that comes closer."""

from dataclasses import replace

import numpy as np
import pytest

from elastic.control import LevelPlans
from elastic.errors import KeysCannotMove
from migration import Assignment, KeyLoads, KeyPlan, Plan, Workload, plan, plan_keys

THETA = 0.2


def by_task(work: list[float], state: float = 10.0) -> Plan:
    current = Assignment.even(len(work), 2)
    return plan(current, 2, Workload(work, [state] * len(work)), tau=THETA, relax=True)


def by_key(work: list[float], size: float = 10.0) -> KeyPlan:
    """All keys are on the first of two nodes."""
    loads = KeyLoads(np.arange(len(work)), [0] * len(work), None, work, [size] * len(work))
    return plan_keys(loads, 2, theta=THETA, relax=True)


EVEN = [4.0, 2.0, 1.0, 1.0]  # one task has to move
ONE_HEAVY = [9.0, 1.0, 1.0, 1.0]  # nothing balances it


def test_the_cheaper_plan_is_chosen_if_both_balance() -> None:
    cheap_keys = LevelPlans(THETA, by_task(EVEN), by_key(EVEN, size=1.0))
    assert cheap_keys.level == "keys"
    assert "level keys: moving" in cheap_keys.reason
    assert "balances the nodes" in cheap_keys.reason
    cheap_tasks = LevelPlans(THETA, by_task(EVEN, state=0.1), by_key(EVEN))
    assert cheap_tasks.level == "tasks"


def test_a_dear_plan_that_balances_beats_a_cheap_one_that_does_not() -> None:
    assert LevelPlans(THETA, by_task(ONE_HEAVY, state=0.1), by_key(EVEN)).level == "keys"
    assert LevelPlans(THETA, by_task(EVEN), by_key(ONE_HEAVY, size=0.1)).level == "tasks"


def test_if_neither_balances_the_one_that_comes_closer_is_chosen() -> None:
    plans = LevelPlans(THETA, by_task([9.0, 1.0, 1.0, 1.0]), by_key([9.0, 4.0, 1.0, 1.0]))
    assert plans.overload("keys") < plans.overload("tasks")
    assert plans.level == "keys"
    assert "above the mean" in plans.reason
    plans = LevelPlans(THETA / 2, by_task([9.0, 4.0, 1.0, 1.0]), by_key([9.0, 1.0, 1.0, 1.0]))
    assert plans.overload("tasks") < plans.overload("keys")
    assert plans.level == "tasks"


def test_a_plan_at_the_cap_balances_whatever_rounding_adds() -> None:
    keys = by_key([0.3, 0.2, 0.1, 0.3, 0.2], size=0.1)
    assert keys.theta_reached > 0
    just_below = float(np.nextafter(keys.theta_reached, 0.0))
    assert LevelPlans(just_below, by_task(EVEN), keys).level == "keys"  # the cheaper one


def test_measured_keys_are_preferred_to_tasks_whose_work_is_assumed() -> None:
    assumed = replace(by_task([1.0] * 4, state=0.1), note="equal work assumed: all tasks worked 0 s")
    plans = LevelPlans(THETA, assumed, by_key(ONE_HEAVY))
    assert plans.level == "keys"
    assert "balances the nodes (equal work assumed: all tasks worked 0 s)" in plans.reason
    assert LevelPlans(THETA, assumed, None, no_keys=KeysCannotMove(None)).level == "tasks"


def test_a_level_without_a_plan_is_not_chosen_and_the_reason_says_why() -> None:
    plans = LevelPlans(THETA, by_task(EVEN), None, no_keys=KeysCannotMove(None))
    assert plans.level == "tasks"
    assert "moving keys is impossible (no stage of this job is grouped by table" in plans.reason
    assert LevelPlans(THETA, None, by_key(EVEN), no_tasks=ValueError("no")).level == "keys"
    assert plans.overload("keys") == pytest.approx(float("inf"))
