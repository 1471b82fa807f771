"""Which deaths of nodes count: only those at one step, without anything done in between."""

from typing import Any

import pytest

from elastic.core import commands, events
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import CaughtUp, InstallUnits, StepEnded, StepStarted
from elastic.core.steps import Position
from elastic.errors import PoisonedStep
from storage.state import BatchTime
from tests.elastic.core.world import World, messages

STEP = Position(Batch(0), 0)


class TwoNodes(World):
    """Two nodes that have their units, and a committed batch; the first node dies."""

    def __init__(self, *, skips_poison: bool = False) -> None:
        super().__init__(skips_poison=skips_poison)
        time, batch = BatchTime(0, 1_000), Batch(0)
        self.hear(events.BatchLogged(batch, (), time))
        self.hear(events.RoundCommitted(self.coordinator.manifest, batch, 0, (), True, time))

    def rejoin(self) -> InstallUnits:
        [(node, install)] = messages(self.join("node-1"), InstallUnits)
        assert node == "node-1"
        assert isinstance(install, InstallUnits)
        return install

    def says(self, kind: Any, *facts: Any) -> list[commands.Command]:
        return self.report(kind, "node-1", *facts)

    def die_at(self, position: Position, *tasks: int) -> list[commands.Command]:
        self.says(StepStarted, position, tuple(UnitId(0, task) for task in tasks))
        return self.says(events.NodeLost, "its process died")


def test_the_third_death_at_one_step_ends_the_job_and_names_the_step() -> None:
    nodes = TwoNodes()
    nodes.says(events.NodeLost, "its process died")  # at the step, but nobody knows
    careful = nodes.rejoin()
    assert (careful.careful, careful.suspects) == (True, ())
    nodes.die_at(STEP, 0, 1)
    assert nodes.rejoin().suspects == (STEP,)
    nodes.die_at(STEP, 1)
    nodes.rejoin()
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
        nodes.rejoin()
        nodes.says(StepStarted, STEP, (UnitId(0, 0),))
        nodes.says(StepEnded, STEP, (UnitId(0, 0),))
        nodes.says(CaughtUp)
    assert nodes.coordinator.failure is None


@pytest.mark.parametrize(
    "reports", [(), ((StepStarted, STEP, (UnitId(0, 0),)), (StepEnded, STEP, (UnitId(0, 0),)))], ids=["loading", "idle"]
)
def test_a_node_that_takes_no_step_when_it_dies_is_not_suspected(reports: tuple[Any, ...]) -> None:
    nodes = TwoNodes()
    for _ in range(20):
        for kind, *facts in reports:
            nodes.says(kind, *facts)
        nodes.says(events.NodeLost, "its process died")
        assert nodes.rejoin().suspects == ()
    assert nodes.coordinator.failure is None


def test_an_end_that_is_heard_after_the_next_start_does_not_hide_it() -> None:
    nodes = TwoNodes()
    nodes.says(StepStarted, STEP, (UnitId(0, 0),))
    nodes.says(StepStarted, STEP, (1,))
    nodes.says(StepEnded, STEP, (UnitId(0, 0),))
    nodes.says(events.NodeLost, "its process died")
    assert nodes.rejoin().suspects == (STEP,)


def test_reports_of_an_incarnation_that_was_replaced_do_not_count() -> None:
    nodes = TwoNodes()
    old = nodes.incarnation("node-1")
    nodes.says(events.NodeLost, "silent for 10 s")
    nodes.rejoin()
    nodes.coordinator.handle(StepStarted("node-1", old, STEP, (UnitId(0, 0),)))
    nodes.says(events.NodeLost, "its process died")
    assert nodes.rejoin().suspects == ()


def test_a_job_that_skips_rows_isolates_the_step_and_ends_only_if_that_does_not_help() -> None:
    nodes = TwoNodes(skips_poison=True)
    for _ in range(3):
        assert nodes.die_at(STEP, 1)
        adopt = nodes.rejoin()
    assert {held.unit.task: held.isolated for held in adopt.units} == {0: (), 1: (STEP,)}
    assert InstallUnits.from_json(adopt.to_json()) == adopt
    for _ in range(2):
        nodes.die_at(STEP, 1)
        nodes.rejoin()
    [fail] = nodes.die_at(STEP, 1)
    assert isinstance(fail, commands.FailJob)
