"""Planning errors travel between processes as they are: plans are also made in Spark tasks."""

import pytest

from migration import errors
from tests.error_trees import check_drawn, check_examples, check_travels

EXAMPLES = [
    errors.MigrationError("anything"),
    errors.InvalidInput("a wrong question"),
    errors.InvalidAssignment("a gap"),
    errors.InvalidWorkload("a NaN"),
    errors.InvalidPlan("a contradiction"),
    errors.InvalidSchedule("no bound"),
    errors.InvalidStandbys("standbys of no task. Name some."),
    errors.UnknownNode("node-9", ["node-1"], "Name one of these."),
    errors.UnknownStrategy("strategy", "best", ["ssm"]),
    errors.UnknownOption("strategy", "ssm", "speed", ["relax"]),
    errors.ValueDoesNotFit("the value function is for 64 tasks, the workload has 32", made_for_tasks=64, tasks=32),
    errors.Infeasible(
        tasks=64,
        nodes=12,
        tau=0.05,
        cap=8.8,
        heaviest_task=17,
        heaviest_work=9.1,
        smallest_tau=0.09,
        most_nodes=11,
    ),
    errors.KeysInfeasible(
        strategy="knap",
        keys=100,
        nodes=15,
        theta=0.08,
        cap=7.2,
        heaviest_hash=-17,
        heaviest_work=9.1,
        smallest_theta=0.365,
        pinned_node="node-2",
        pinned_work=8.5,
        least_pinned=0.5,
    ),
    errors.TooManyEntries(strategy="min-mig", theta=0.08, fewest_entries=3_100, most_entries=3_000),
    errors.TooManyPartitions(counts=[10, 10**20], limit=5, what="this", advice="Use the beam."),
]


def test_there_is_an_example_of_every_error() -> None:
    check_examples(errors.MigrationError, EXAMPLES, "migration")


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_travels_with_its_message_and_its_facts(error: Exception) -> None:
    check_travels(error)


def test_the_tree_is_drawn_in_full() -> None:
    check_drawn(errors.MigrationError, errors)
