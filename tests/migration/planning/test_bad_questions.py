"""Every wrong question gets a typed error that names the value and says what to do; nothing changes."""

import math

import pytest

from migration import (
    Assignment,
    Infeasible,
    InvalidInput,
    InvalidWorkload,
    MigrationError,
    UnknownNode,
    UnknownOption,
    UnknownStrategy,
    Workload,
    plan,
)

CURRENT = Assignment.even(8, 2)
EVEN = Workload.uniform(8)


@pytest.mark.parametrize("tau", [-0.1, math.nan, math.inf, "much", None, True])
def test_a_tau_that_is_no_overload_is_refused(tau: float) -> None:
    with pytest.raises(InvalidInput, match=r"tau is .*Give the allowed overload"):
        plan(CURRENT, 2, EVEN, tau)


@pytest.mark.parametrize("nodes", [0, -3, 2.5, None, True, "three"])
def test_a_node_count_that_is_no_count_is_refused(nodes: int) -> None:
    with pytest.raises(InvalidInput, match=r"nodes is .*Give a"):
        plan(CURRENT, nodes, EVEN)


def test_more_nodes_than_tasks_are_refused_unless_nodes_may_idle() -> None:
    with pytest.raises(InvalidInput, match="9 nodes are more than 8 tasks"):
        plan(CURRENT, 9, EVEN, tau=1)
    idle = plan(CURRENT, 9, EVEN, tau=1, allow_idle=True)
    assert len(idle.target.nodes) == 9


def test_unknown_nodes_are_named() -> None:
    with pytest.raises(UnknownNode, match="'node-9'") as caught:
        plan(CURRENT, ["node-1", "node-9"], EVEN)
    assert caught.value.node == "node-9"
    with pytest.raises(UnknownNode, match="'node-9'"):
        plan(CURRENT, 1, EVEN, leaving=["node-9"])


def test_names_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInput, match="both to remain and to leave"):
        plan(CURRENT, ["node-1"], EVEN, leaving=["node-1"])
    with pytest.raises(InvalidInput, match="not all new"):
        plan(CURRENT, 3, EVEN, new_nodes=["node-1"])
    with pytest.raises(InvalidInput, match="2 new nodes are named but 1 join"):
        plan(CURRENT, 3, EVEN, new_nodes=["x", "y"])
    with pytest.raises(InvalidInput, match="Name at least one"):
        plan(CURRENT, [], EVEN)


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(UnknownStrategy, match="'ssm', 'mtm', 'even', 'consistent-hash'"):
        plan(CURRENT, 2, EVEN, strategy="magic")


def test_an_option_of_another_strategy_is_refused() -> None:
    with pytest.raises(UnknownOption, match="'ssm' has no option 'seed'; it takes no options"):
        plan(CURRENT, 2, EVEN, seed=1)
    with pytest.raises(UnknownOption, match="'seed', 'virtual_nodes'"):
        plan(CURRENT, 2, EVEN, strategy="consistent-hash", gamma=0.5)
    with pytest.raises(InvalidInput, match="virtual_nodes is 0"):
        plan(CURRENT, 2, EVEN, strategy="consistent-hash", virtual_nodes=0)
    with pytest.raises(InvalidInput, match="seed is 'x'"):
        plan(CURRENT, 2, EVEN, strategy="consistent-hash", seed="x")


def test_things_that_are_no_assignment_and_no_workload_are_refused() -> None:
    with pytest.raises(InvalidInput, match="current is dict and workload is Workload"):
        plan({"node-1": (0, 8)}, 2, EVEN)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="workload is list"):
        plan(CURRENT, 2, [1.0] * 8)  # type: ignore[arg-type]


def test_a_workload_of_other_length_is_refused() -> None:
    with pytest.raises(InvalidWorkload, match="8 tasks and the workload 9"):
        plan(CURRENT, 2, Workload.uniform(9))


def test_a_task_above_the_cap_is_named_with_the_tau_and_the_nodes_that_would_do() -> None:
    workload = Workload([1.0] * 7 + [9.0])
    with pytest.raises(Infeasible, match=r"task 7 alone carries 9, above the cap 4\.8") as caught:
        plan(CURRENT, 4, workload)
    error = caught.value
    assert error.heaviest_task == 7
    assert plan(CURRENT, 4, workload, tau=error.smallest_tau).balanced
    assert plan(CURRENT, error.most_nodes, workload).balanced
    with pytest.raises(Infeasible):
        plan(CURRENT, error.most_nodes + 1, workload)


def test_counts_that_leave_no_balanced_partition_are_explained() -> None:
    workload = Workload.uniform(64)
    with pytest.raises(Infeasible, match="no 9 contiguous intervals") as caught:
        plan(Assignment.even(64, 8), 9, workload, tau=0.1)
    assert caught.value.heaviest_task is None
    assert caught.value.smallest_tau == pytest.approx(8 / (64 / 9) - 1)


def test_the_tau_in_the_message_can_be_used_as_it_is_printed() -> None:
    for seed in range(40):
        workload = Workload([((seed * 7919 + task * 104729) % 97) / 7 for task in range(12)])
        with pytest.raises(Infeasible) as caught:
            plan(Assignment.even(12, 3), 5, workload, tau=0)
        printed = str(caught.value).split("Raise tau to ")[1].split(",")[0]
        assert plan(Assignment.even(12, 3), 5, workload, tau=float(printed)).balanced
        assert float(printed) <= caught.value.smallest_tau * 1.2 + 0.01


def test_every_error_is_a_migration_error_and_bad_input_a_value_error() -> None:
    assert issubclass(InvalidInput, ValueError)
    assert all(issubclass(kind, MigrationError) for kind in (InvalidInput, Infeasible, UnknownNode, UnknownOption))
