"""Errors of the decision process travel from executors to the driver as they are."""

import pytest

from mdp import errors
from tests.error_trees import check_drawn, check_examples, check_travels

EXAMPLES = [
    errors.MdpError("anything"),
    errors.InvalidMatrix("a row that sums to 2"),
    errors.InvalidLog("nothing in it"),
    errors.GapInLog("2015-03-01 10:00", "2015-03-01 12:00", 2),
    errors.DuplicatedTime("2015-03-01 10:00", 3),
    errors.SingleState(8),
    errors.InvalidRecipe("no such rounding"),
    errors.InvalidProjection("gamma is 1"),
    errors.NothingBalanced([9, 10], 0.1, 0.125),
    errors.InvalidTable("of another format"),
    errors.UnknownPartition("not balanced"),
    errors.MissingPackage("pictures", "matplotlib", "charts"),
]


def test_there_is_an_example_of_every_error() -> None:
    check_examples(errors.MdpError, EXAMPLES, "mdp")


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_travels_with_its_message_and_its_facts(error: Exception) -> None:
    check_travels(error)


def test_the_tree_is_drawn_in_full() -> None:
    check_drawn(errors.MdpError, errors)


def test_a_node_count_without_a_balanced_partition_names_the_tau_that_would_do() -> None:
    error = errors.NothingBalanced([9], 0.1, 0.125)
    assert "Raise tau to 0.125" in str(error)
    assert (error.nodes, error.tau, error.smallest_tau) == ((9,), 0.1, 0.125)
