"""Which deaths of nodes count: only those at one step, without anything done in between."""

from typing import Any

import pytest

from elastic.errors import PoisonedStep
from elastic.routing import IntervalRouting
from elastic.runtime.protocol import (
    Adopt,
    CaughtUp,
    Coordinator,
    Joined,
    Position,
    StepEnded,
    StepStarted,
    commands,
    events,
)
from migration import Assignment
from storage.state import BatchTime, Manifest, Unit

MANIFEST = Manifest.first([Unit.of_task(task) for task in range(4)])
STEP = Position(0, 0)


class TwoNodes:
    """A coordinator with two nodes that have their units, and a committed batch; the first node dies."""

    def __init__(self, *, skips_poison: bool = False) -> None:
        current = Assignment.even(tasks=4, nodes=2)
        self.coordinator = Coordinator(
            MANIFEST, IntervalRouting(current), -1, [False], current.nodes, skips_poison=skips_poison
        )
        for node in current.nodes:
            self.join(node)
        time = BatchTime(0, 1_000)
        self.coordinator.handle(events.BatchLogged(0, (), time))
        self.coordinator.handle(events.RoundCommitted(self.coordinator.manifest, 0, 0, (), True, time))

    def join(self, node: str = "node-1") -> Adopt:
        self.says(Joined, "an address", node=node)
        decided = self.coordinator.handle(events.EpochCommitted(self.coordinator.manifest))
        [adopt] = [one.message for one in decided if isinstance(one, commands.Send) and one.node == node]
        assert isinstance(adopt, Adopt)
        return adopt

    def says(self, kind: Any, *facts: Any, node: str = "node-1") -> list[commands.Command]:
        return self.coordinator.handle(kind(node, self.coordinator.roster.wanted()[node], *facts))

    def die_at(self, position: Position, *slots: int) -> list[commands.Command]:
        self.says(StepStarted, position, slots)
        return self.says(events.NodeLost, "its process died")


def test_the_third_death_at_one_step_ends_the_job_and_names_the_step() -> None:
    nodes = TwoNodes()
    nodes.says(events.NodeLost, "its process died")  # at the step, but nobody knows
    careful = nodes.join()
    assert (careful.careful, careful.suspects) == (True, ())
    nodes.die_at(STEP, 0, 1)
    assert nodes.join().suspects == (STEP,)
    nodes.die_at(STEP, 1)
    nodes.join()
    [fail] = nodes.die_at(STEP, 1)
    assert isinstance(fail, commands.FailJob)
    assert isinstance(fail.failure, PoisonedStep)
    assert (fail.failure.node, fail.failure.batch, fail.failure.round) == ("node-1", 0, 0)
    assert (fail.failure.tasks, fail.failure.deaths) == ((1,), 3)
    assert nodes.coordinator.handle(events.SnapshotDue()) == []


def test_a_node_that_caught_up_before_each_death_is_never_suspected() -> None:
    nodes = TwoNodes()
    for _ in range(20):
        assert nodes.die_at(STEP, 0)
        nodes.join()
        nodes.says(StepStarted, STEP, (0,))
        nodes.says(StepEnded, STEP, (0,))
        nodes.says(CaughtUp)
    assert nodes.coordinator.failure is None


@pytest.mark.parametrize("reports", [(), ((StepStarted, STEP, (0,)), (StepEnded, STEP, (0,)))], ids=["loading", "idle"])
def test_a_node_that_takes_no_step_when_it_dies_is_not_suspected(reports: tuple[Any, ...]) -> None:
    nodes = TwoNodes()
    for _ in range(20):
        for kind, *facts in reports:
            nodes.says(kind, *facts)
        nodes.says(events.NodeLost, "its process died")
        assert nodes.join().suspects == ()
    assert nodes.coordinator.failure is None


def test_an_end_that_is_heard_after_the_next_start_does_not_hide_it() -> None:
    nodes = TwoNodes()
    nodes.says(StepStarted, STEP, (0,))
    nodes.says(StepStarted, STEP, (1,))
    nodes.says(StepEnded, STEP, (0,))
    nodes.says(events.NodeLost, "its process died")
    assert nodes.join().suspects == (STEP,)


def test_reports_of_an_incarnation_that_was_replaced_do_not_count() -> None:
    nodes = TwoNodes()
    old = nodes.coordinator.roster.wanted()["node-1"]
    nodes.says(events.NodeLost, "silent for 10 s")
    nodes.join()
    nodes.coordinator.handle(StepStarted("node-1", old, STEP, (0,)))
    nodes.says(events.NodeLost, "its process died")
    assert nodes.join().suspects == ()


def test_a_job_that_skips_rows_isolates_the_step_and_ends_only_if_that_does_not_help() -> None:
    nodes = TwoNodes(skips_poison=True)
    for _ in range(3):
        assert nodes.die_at(STEP, 1)
        adopt = nodes.join()
    assert {held.slot: held.isolated for held in adopt.units} == {0: (), 1: (STEP,)}
    assert Adopt.from_json(adopt.to_json()) == adopt
    for _ in range(2):
        nodes.die_at(STEP, 1)
        nodes.join()
    [fail] = nodes.die_at(STEP, 1)
    assert isinstance(fail, commands.FailJob)
