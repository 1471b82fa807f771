"""New groupings are committed with the last round of a batch, and hold for senders and nodes from the next batch on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import ApplyStep, InstallUnits, NodeJoined, StepApplied
from elastic.core.steps import Position
from elastic.routing import Grouping, Groupings, KeyTable, Routing, TableGrouping
from migration import Assignment
from storage.state import BatchTime, LogRef, Manifest
from tests.elastic.core.world import messages

TASKS = 4
EMPTY = (TableGrouping(), TableGrouping())
OTHER = (TableGrouping(KeyTable.from_entries({17: 3})), TableGrouping())
ANOTHER = (TableGrouping(), TableGrouping(KeyTable.from_entries({5: 1})))


class TwoStages:
    """A coordinator whose first stage emits to the second, with one node that has all units; commits at once."""

    def __init__(self) -> None:
        routing = Routing(Assignment.even(TASKS, 1), Groupings(TASKS, EMPTY))
        self.units = [unit for stage in (0, 1) for unit in routing.units(stage)]
        manifest = Manifest.first(self.units, routing.to_json())
        self.coordinator = Coordinator(manifest, routing, Batch(-1), [True, False], ["node-1"])
        self.sent: list[Any] = []
        self.rounds: list[commands.CommitRound] = []
        self.holds_back = False  # commits of rounds
        self._follow(self.coordinator.start())
        [node] = self.coordinator.view().nodes
        self.node = (node.name, node.incarnation)
        self.hear(NodeJoined(*self.node, "address"))

    def hear(self, event: Any) -> None:
        self._follow(self.coordinator.handle(event))

    def log(self, batch: int, epoch: int = 0) -> None:
        self.hear(events.BatchLogged(Batch(batch), (), BatchTime(batch, 1_000 * batch), None, epoch))

    def apply(self, batch: int, round_: int, *, emits: bool = False) -> None:
        """Report a step by all units."""
        emitted = LogRef.new(batch, round_ + 1, 0, 0) if emits else None
        stages = (1,) if emits else ()
        position = Position(Batch(batch), round_)
        self.hear(StepApplied(*self.node, position, tuple(self.units), emitted, stages))

    def commit(self, command: commands.CommitRound) -> None:
        manifest = self.coordinator.manifest.with_batch(
            command.batch, command.round, command.complete, command.logs, command.time
        )
        routing = None
        if command.groupings is not None:
            routing = self.routing.with_groupings(command.groupings, manifest.epoch + 1)
            manifest = replace(manifest, epoch=routing.epoch, assignment=routing.to_json())
        manifest = replace(manifest, number=manifest.number + 1)
        self.hear(
            events.RoundCommitted(
                manifest, command.batch, command.round, command.logs, command.complete, command.time, routing
            )
        )

    @property
    def routing(self) -> Routing:
        return self.coordinator.view().routing

    def _follow(self, decided: Sequence[Command]) -> None:
        self.sent += [message for kind in (InstallUnits, ApplyStep) for _, message in messages(decided, kind)]
        for command in decided:
            if isinstance(command, commands.CommitEpoch):
                self.hear(events.EpochCommitted(self.coordinator.manifest))
            if isinstance(command, commands.CommitRound):
                self.rounds.append(command)
                if not self.holds_back:
                    self.commit(command)

    def shapes(self) -> list[tuple[int, int, bool, tuple[Grouping, ...] | None]]:
        return [(one.batch, one.round, one.complete, one.groupings) for one in self.rounds]


def test_new_groupings_take_one_more_round_of_the_batch_under_way() -> None:
    world = TwoStages()
    world.log(0)
    world.hear(events.RegroupRequested(OTHER))
    world.apply(0, 0, emits=True)
    world.apply(0, 1)
    assert world.shapes() == [(0, 0, False, None), (0, 1, False, None), (0, 2, True, OTHER)]
    assert world.routing.groupings == Groupings(TASKS, OTHER, epoch=1)
    assert world.coordinator.view().route == world.routing


def test_without_a_request_a_batch_has_the_rounds_that_it_needs() -> None:
    world = TwoStages()
    world.log(0)
    world.apply(0, 0, emits=True)
    world.apply(0, 1)
    assert world.shapes() == [(0, 0, False, None), (0, 1, True, None)]
    assert world.routing.groupings.by_stage == EMPTY


def test_a_request_between_two_batches_waits_for_the_next() -> None:
    world = TwoStages()
    world.hear(events.RegroupRequested(OTHER))
    assert world.rounds == []
    world.log(0)
    world.apply(0, 0)
    assert world.shapes() == [(0, 0, False, None), (0, 1, True, OTHER)]
    world.apply(0, 1)
    world.log(1, epoch=1)
    world.apply(1, 0)
    assert world.shapes()[2:] == [(1, 0, False, None), (1, 1, True, None)]


def test_a_batch_that_was_sent_by_the_old_groupings_is_not_committed() -> None:
    world = TwoStages()
    world.hear(events.RegroupRequested(OTHER))
    world.log(0)
    world.apply(0, 0)
    world.log(1, epoch=0)
    assert world.coordinator.view().newest_batch == 0
    world.log(1, epoch=1)
    assert world.coordinator.view().newest_batch == 1


def test_nodes_get_new_groupings_with_the_step_that_they_were_committed_with() -> None:
    world = TwoStages()
    world.hear(events.RegroupRequested(OTHER))
    world.log(0)
    world.apply(0, 0)
    installed, *steps = world.sent
    assert installed.groupings == Groupings(TASKS, EMPTY)
    assert [step.groupings for step in steps] == [None, Groupings(TASKS, OTHER, epoch=1)]


def test_a_node_that_replaces_another_gets_the_groupings_of_the_newest_epoch() -> None:
    world = TwoStages()
    world.hear(events.RegroupRequested(OTHER))
    world.log(0)
    world.apply(0, 0)
    world.hear(events.NodeLost(*world.node, "crashed"))
    [node] = world.coordinator.view().nodes
    world.hear(NodeJoined(node.name, node.incarnation, "address"))
    assert world.sent[-1].groupings == Groupings(TASKS, OTHER, epoch=1)


def test_a_second_request_while_the_first_is_being_committed_is_not_lost() -> None:
    world = TwoStages()
    world.hear(events.RegroupRequested(OTHER))
    world.log(0)
    world.holds_back = True
    world.apply(0, 0)
    world.hear(events.RegroupRequested(ANOTHER))
    world.holds_back = False
    world.commit(world.rounds[-1])
    assert world.routing.groupings.by_stage == OTHER
    world.apply(0, 1)
    world.log(1, epoch=1)
    world.apply(1, 0)
    assert world.routing.groupings == Groupings(TASKS, ANOTHER, epoch=2)


def test_guests_are_units_of_the_job() -> None:
    world = TwoStages()
    assert UnitId(1, 3, guests=True) in {handle.unit for handle in world.sent[0].units}
