"""Worked examples of paper 000, and instances that contradict two of its theorems."""

import pytest

from migration import KeysInfeasible
from migration.keys import KeyLoads, plan_keys

# Figure 4: k1, k2 and k5 are on d1, the others on d2; k3 and k5 have entries. Absolute balance is asked for.
FIGURE_4 = KeyLoads(
    hashes=[1, 2, 3, 4, 5, 6],
    home=[0, 0, 0, 1, 1, 1],
    current=[0, 0, 1, 1, 0, 1],
    work=[7.0, 4.0, 2.0, 1.0, 5.0, 1.0],
)


def test_llfd_ends_figure_4_balanced_with_four_entries() -> None:
    plan = plan_keys(FIGURE_4, ["d1", "d2"], theta=0, strategy="llfd")
    assert plan.loads_before == (16.0, 4.0)
    assert plan.loads_after == (10.0, 10.0)
    assert {entry.hash: entry.node for entry in plan.entries} == {1: "d2", 3: "d2", 4: "d1", 5: "d1"}
    assert {(move.hash, move.source, move.target) for move in plan.moves} == {(1, "d1", "d2"), (4, "d2", "d1")}


def test_min_table_ends_figure_4_balanced_with_two_entries() -> None:
    plan = plan_keys(FIGURE_4, ["d1", "d2"], theta=0, strategy="min-table", most_entries=2)
    assert plan.loads_after == (10.0, 10.0)
    assert {entry.hash: entry.node for entry in plan.entries} == {2: "d2", 4: "d1"}


def test_mixed_ends_figure_4_as_min_table_does_if_two_entries_are_allowed() -> None:
    plan = plan_keys(FIGURE_4, ["d1", "d2"], theta=0, strategy="mixed", most_entries=2)
    assert {entry.hash: entry.node for entry in plan.entries} == {2: "d2", 4: "d1"}


def test_theorem_1_is_false_at_small_theta() -> None:
    """It says that LLFD always finds a solution if a perfect one exists."""
    loads = KeyLoads(range(5), [1, 0, 1, 1, 0], None, [2.0, 2.0, 2.0, 3.0, 3.0])
    perfect = KeyLoads(range(5), [0, 0, 0, 1, 1], None, [2.0, 2.0, 2.0, 3.0, 3.0])
    assert plan_keys(perfect, 2, theta=0, strategy="llfd").loads_after == (6, 6)
    with pytest.raises(KeysInfeasible) as caught:
        plan_keys(loads, 2, theta=0, strategy="llfd")
    assert caught.value.heaviest_hash is None
    # With the theta of the theorem, (1 - 1/N) / 3, it does find one.
    assert caught.value.smallest_theta == pytest.approx((1 - 1 / 2) / 3)
    assert plan_keys(loads, 2, theta=(1 - 1 / 2) / 3, strategy="llfd").loads_after == (5, 7)


def test_theorem_2_is_false_at_theta_0() -> None:
    """It says that Mixed balances at least as well as LLFD."""
    loads = KeyLoads(range(5), [0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [2.0, 2.0, 8.0, 9.0, 3.0], [1.0, 1.0, 2.0, 1.0, 2.0])
    assert plan_keys(loads, 2, theta=0, strategy="llfd").loads_after == (12, 12)
    with pytest.raises(KeysInfeasible) as caught:
        plan_keys(loads, 2, theta=0, strategy="mixed")
    assert caught.value.smallest_theta > 0.08


def test_beta_weighs_work_against_state() -> None:
    """Of k1 and k2 in Figure 4, with as much state as work, beta 0.5 takes k2 first and beta 1.5 takes k1."""
    loads = KeyLoads([1, 2, 3, 4], [0, 0, 1, 2], None, [7.0, 4.0, 2.0, 2.0])
    plans = {beta: plan_keys(loads, 3, 0.4, "min-mig", beta=beta) for beta in (0.5, 1.5)}
    assert [move.hash for move in plans[0.5].moves] == [2]
    assert [move.hash for move in plans[1.5].moves] == [1, 3]
