"""A rekeying takes two more rounds of a batch: orders, with the new groupings, and the parts that units emit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import ApplyStep, InstallUnits, NodeJoined, StepApplied
from elastic.core.rekeying import Rekeyings, RekeyingView
from elastic.core.steps import Position
from elastic.routing import Groupings, KeyTable, KeyTargets, Routing, TableGrouping
from migration import Assignment
from storage.state import BatchTime, LogRef, Manifest
from tests.elastic.core.world import messages

TASKS = 4
EMPTY = (TableGrouping(), TableGrouping())
OTHER = (TableGrouping(KeyTable.from_entries({17: 3})), TableGrouping())
TO_OTHER = KeyTargets.from_mapping(0, {17: 3})
BACK_HOME = KeyTargets.from_mapping(0, {17: None})
GUESTS = UnitId(0, 3, guests=True)


class World:
    """A coordinator with one node that has all units; commits at once. Two stages, or one that emits nothing."""

    def __init__(self, *, stages: int = 2, manifest: Manifest | None = None) -> None:
        routing = Routing(Assignment.even(TASKS, 1), Groupings(TASKS, EMPTY[:stages]))
        self.units = [unit for stage in range(stages) for unit in routing.units(stage)]
        if manifest is None:
            manifest = Manifest.first(self.units, routing.to_json())
        routing = Routing.from_json(manifest.assignment)
        self.coordinator = Coordinator(manifest, routing, Batch(-1), [True, False][2 - stages :], ["node-1"])
        self.sent: list[Any] = []
        self.rounds: list[commands.CommitRound] = []
        self.holds_back = False  # commits of rounds
        self._follow(self.coordinator.start())
        [node] = self.coordinator.view().nodes
        self.node = (node.name, node.incarnation)
        self.hear(NodeJoined(*self.node, "address"))

    def hear(self, event: Any) -> None:
        self._follow(self.coordinator.handle(event))

    def request(self, *portions: KeyTargets, **options: bool) -> None:
        sizes = tuple(100.0 * (number + 1) for number in range(len(portions)))
        self.hear(events.RekeyRequested("r1", portions, sizes, **options))

    def log(self, batch: int, epoch: int = 0, *, log_bytes: int = 0) -> None:
        logs = (replace(LogRef.new(batch, 0, 0, 0), size=log_bytes),) if log_bytes else ()
        self.hear(events.BatchLogged(Batch(batch), logs, BatchTime(batch, 1_000 * batch), None, epoch))

    def apply(self, batch: int, round_: int, *, emits: bool = False, parts: bool = False) -> None:
        """Report a step by all units."""
        emitted = replace(LogRef.new(batch, round_ + 1, 0, 0), size=50) if emits or parts else None
        stages = (1,) if emits else ()
        position = Position(Batch(batch), round_)
        self.hear(StepApplied(*self.node, position, tuple(self.units), emitted, stages))

    def commit(self, command: commands.CommitRound) -> None:
        orders = () if command.regrouping is None else (LogRef.new(command.batch, command.round, 0),)
        logs = (*command.logs, *orders)
        manifest = self.coordinator.manifest.with_batch(
            command.batch, command.round, command.complete, logs, None if command.round else command.time
        )
        routing = None
        if command.regrouping is not None:
            routing = self.routing.with_groupings(command.regrouping.groupings, manifest.epoch + 1)
            manifest = replace(manifest, epoch=routing.epoch, assignment=routing.to_json())
        manifest = replace(manifest, number=manifest.number + 1)
        self.hear(
            events.RoundCommitted(manifest, command.batch, command.round, logs, command.complete, command.time, routing)
        )

    @property
    def routing(self) -> Routing:
        return self.coordinator.view().routing

    def rekeying(self) -> RekeyingView:
        view = self.coordinator.view().rekeying
        assert view is not None
        return view

    def shapes(self) -> list[tuple[int, int, bool, bool]]:
        """Return batch, round, whether it ends the batch and whether it has orders, of all rounds."""
        return [(one.batch, one.round, one.complete, one.regrouping is not None) for one in self.rounds]

    def _follow(self, decided: Sequence[Command]) -> None:
        self.sent += [message for kind in (InstallUnits, ApplyStep) for _, message in messages(decided, kind)]
        for command in decided:
            if isinstance(command, commands.CommitEpoch):
                self.hear(events.EpochCommitted(self.coordinator.manifest))
            if isinstance(command, commands.CommitRound):
                self.rounds.append(command)
                if not self.holds_back:
                    self.commit(command)


def test_orders_and_parts_take_two_more_rounds_of_the_batch_in_flight() -> None:
    world = World()
    world.log(0)
    world.request(TO_OTHER)
    world.apply(0, 0, emits=True)
    world.apply(0, 1)
    assert world.shapes() == [(0, 0, False, False), (0, 1, False, False), (0, 2, False, True)]
    regrouping = world.rounds[-1].regrouping
    assert regrouping is not None
    assert regrouping.groupings == OTHER
    [(source, orders)] = regrouping.orders.items()
    assert source == UnitId(0, 17 % TASKS).number
    assert (orders.hashes.tolist(), orders.targets.tolist()) == ([17], [GUESTS.number])
    assert world.routing.groupings == Groupings(TASKS, OTHER, epoch=1)
    assert world.coordinator.view().route == world.routing
    world.apply(0, 2, parts=True)
    assert world.shapes()[3:] == [(0, 3, True, False)]
    assert len(world.rounds[-1].logs) == 1
    assert not world.rekeying().is_over
    world.apply(0, 3)
    assert world.rekeying().is_over
    assert (world.rekeying().keys_done, world.rekeying().size_done, world.rekeying().stored_bytes) == (1, 100.0, 50)


def test_without_a_request_a_batch_has_the_rounds_that_it_needs() -> None:
    world = World()
    world.log(0)
    world.apply(0, 0, emits=True)
    world.apply(0, 1)
    assert world.shapes() == [(0, 0, False, False), (0, 1, True, False)]
    assert world.routing.groupings.by_stage == EMPTY


def test_a_request_between_two_batches_waits_for_the_next() -> None:
    world = World()
    world.request(TO_OTHER)
    assert world.rounds == []
    assert world.coordinator.view().rekeying_is_due
    world.log(0)
    world.apply(0, 0)
    world.apply(0, 1)
    assert world.shapes() == [(0, 0, False, False), (0, 1, False, True), (0, 2, True, False)]
    world.apply(0, 2)
    world.log(1, epoch=1)
    world.apply(1, 0)
    assert world.shapes()[3:] == [(1, 0, False, False), (1, 1, True, False)]


def test_orders_follow_rows_that_emit_nothing_before_these_are_processed() -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    world.log(0)
    assert world.shapes() == [(0, 0, False, False), (0, 1, False, True)]
    world.apply(0, 0)
    world.apply(0, 1, parts=True)
    assert world.shapes()[2:] == [(0, 2, True, False)]


def test_parts_are_committed_only_when_every_unit_has_taken_rows_and_orders() -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    world.log(0)
    world.apply(0, 1, parts=True)  # overtakes the report before it
    assert len(world.rounds) == 2
    world.apply(0, 0)
    assert len(world.rounds) == 3
    assert len(world.rounds[-1].logs) == 1


def test_senders_wait_while_a_batch_is_about_to_commit_other_groupings() -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    assert not world.coordinator.view().awaits_groupings  # the next batch brings the change
    world.holds_back = True
    world.log(0)
    world.commit(world.rounds[0])
    assert world.coordinator.view().awaits_groupings
    world.commit(world.rounds[1])
    assert not world.coordinator.view().awaits_groupings


def test_units_have_their_keys_from_the_batch_on_that_moved_them() -> None:
    world = World(stages=1)
    world.log(0)
    world.apply(0, 0)
    assert world.coordinator.view().regrouped_batch == -1
    world.request(TO_OTHER)
    world.log(1)
    assert (world.routing.groupings.by_stage, world.coordinator.view().regrouped_batch) == (OTHER[:1], 1)
    # Another driver does not know when keys moved, only that it was not after the newest batch.
    assert World(stages=1, manifest=world.coordinator.manifest).coordinator.view().regrouped_batch == 1


def test_a_batch_that_was_sent_by_the_old_groupings_is_not_committed() -> None:
    world = World()
    world.request(TO_OTHER)
    world.log(0)
    world.apply(0, 0)
    world.log(1, epoch=0)
    assert world.coordinator.view().newest_batch == 0
    world.log(1, epoch=1)
    assert world.coordinator.view().newest_batch == 1


def test_nodes_get_new_groupings_with_the_step_that_they_were_committed_with() -> None:
    world = World()
    world.request(TO_OTHER)
    world.log(0)
    world.apply(0, 0)
    installed, *steps = world.sent
    assert installed.routing is not None
    assert installed.routing.groupings == Groupings(TASKS, EMPTY)
    assert [step.routing and step.routing.groupings for step in steps] == [None, Groupings(TASKS, OTHER, epoch=1)]


def test_a_node_that_replaces_another_gets_the_groupings_of_the_newest_epoch() -> None:
    world = World()
    world.request(TO_OTHER)
    world.log(0)
    world.apply(0, 0)
    world.hear(events.NodeLost(*world.node, "crashed"))
    [node] = world.coordinator.view().nodes
    world.hear(NodeJoined(node.name, node.incarnation, "address"))
    assert world.sent[-1].routing.groupings == Groupings(TASKS, OTHER, epoch=1)


def test_every_batch_takes_one_portion() -> None:
    world = World(stages=1)
    world.request(TO_OTHER, BACK_HOME)
    for batch in (0, 1):
        world.log(batch, epoch=batch)
        for round_ in range(3):
            world.apply(batch, round_)
        assert world.rekeying().portions_done == batch + 1
    assert world.rekeying().is_over
    assert world.rekeying().size_done == 300.0
    assert world.routing.groupings.by_stage == EMPTY[:1]
    assert world.rekeying().story[-1] == "2 of 2 portions are done"


def test_a_portion_of_keys_that_are_where_they_should_be_takes_no_round() -> None:
    world = World(stages=1)
    world.request(BACK_HOME, TO_OTHER, TO_OTHER)
    world.log(0)
    assert world.shapes() == [(0, 0, False, False), (0, 1, False, True)]
    for round_ in range(3):
        world.apply(0, round_)
    assert world.rekeying().portions_done == 2
    world.log(1, epoch=1)
    world.apply(1, 0)
    assert world.shapes()[3:] == [(1, 0, False, False), (1, 1, True, False)]
    assert world.rekeying().is_over


def test_a_pause_takes_effect_between_two_portions() -> None:
    world = World(stages=1)
    world.request(TO_OTHER, BACK_HOME)
    world.log(0)
    world.hear(events.PauseRequested("r1"))
    for round_ in range(3):
        world.apply(0, round_)
    assert (world.rekeying().is_paused, world.rekeying().portions_done, world.rekeying().is_over) == (True, 1, False)
    world.log(1, epoch=1)
    assert world.shapes()[3:] == [(1, 0, True, False)]
    world.hear(events.ResumeRequested("r1"))
    world.apply(1, 0)
    world.log(2, epoch=1)
    assert world.shapes()[4:] == [(2, 0, False, False), (2, 1, False, True)]


def test_a_rekeying_that_was_paused_before_it_began_waits_for_its_resume() -> None:
    world = World(stages=1)
    world.request(TO_OTHER, paused=True)
    world.log(0)
    assert world.shapes() == [(0, 0, True, False)]


def test_a_cancellation_leaves_out_the_portions_that_have_not_begun() -> None:
    world = World(stages=1)
    world.request(TO_OTHER, BACK_HOME)
    world.log(0)
    world.hear(events.CancelRequested("r1"))
    assert not world.rekeying().is_over
    for round_ in range(3):
        world.apply(0, round_)
    assert world.rekeying().is_over
    assert world.routing.groupings.by_stage == OTHER[:1]


def test_a_batch_that_awaits_orders_ends_without_them_if_the_rekeying_is_cancelled() -> None:
    world = World()
    world.request(TO_OTHER)
    world.log(0)
    world.hear(events.CancelRequested("r1"))
    world.apply(0, 0)
    assert world.shapes() == [(0, 0, False, False), (0, 1, True, False)]


@pytest.mark.parametrize("request_", [events.PauseRequested, events.CancelRequested])
def test_a_request_for_another_rekeying_changes_nothing(request_: Any) -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    world.hear(request_("another"))
    world.hear(events.ChangeNoted("another", "a line"))
    assert not world.rekeying().is_paused
    assert not world.rekeying().is_cancelled
    assert world.rekeying().story == ()
    world.hear(events.ChangeNoted("r1", "a line"))
    assert world.rekeying().story == ("a line",)


def test_a_second_rekeying_does_not_replace_one_that_is_in_flight() -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    world.log(0)
    world.hear(events.RekeyRequested("r2", (BACK_HOME,), (1.0,)))
    assert world.rekeying().id == "r1"
    for round_ in range(3):
        world.apply(0, round_)
    world.hear(events.RekeyRequested("r2", (BACK_HOME,), (1.0,)))
    assert world.rekeying().id == "r2"


def test_the_view_names_the_nodes_that_a_portion_waits_for() -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    assert world.rekeying().awaited == ()
    world.log(0)
    assert (world.rekeying().batch, world.rekeying().awaited) == (0, ("node-1",))
    for round_ in range(3):
        world.apply(0, round_)
    assert (world.rekeying().batch, world.rekeying().awaited) == (None, ())


def test_senders_wait_before_every_portion() -> None:
    world = World(stages=1)
    world.request(TO_OTHER, BACK_HOME)
    world.log(0)
    for round_ in range(3):
        world.apply(0, round_)
    world.holds_back = True
    world.log(1, epoch=1)
    world.commit(world.rounds[-1])
    assert world.coordinator.view().awaits_groupings
    world.commit(world.rounds[-1])
    assert not world.coordinator.view().awaits_groupings


def test_another_batch_neither_ends_a_portion_nor_counts_as_its_states() -> None:
    world = World(stages=1)
    world.log(0)
    world.apply(0, 0)  # not published yet
    world.request(TO_OTHER)
    world.log(1)
    assert (world.rekeying().batch, world.rekeying().portions_done) == (1, 0)
    world.apply(1, 0)
    world.apply(1, 1, parts=True)
    world.log(2, epoch=1, log_bytes=7_000)  # rows, while the parts are not taken yet
    assert (world.rekeying().batch, world.rekeying().stored_bytes) == (1, 50)
    world.apply(1, 2)
    assert (world.rekeying().is_over, world.rekeying().stored_bytes) == (True, 50)


def test_progress_is_in_keys_and_bytes_of_the_portions_that_are_done() -> None:
    world = World(stages=1)
    world.request(KeyTargets.from_mapping(0, {17: 3, 18: 3, 19: 1}), BACK_HOME)

    def progress() -> tuple[float, ...]:
        found = world.rekeying()
        return found.portions_done, found.portions, found.keys_done, found.keys, found.size_done, found.size

    seen, stored = [progress()], []
    for batch in (0, 1):
        world.log(batch, epoch=batch)
        for round_ in range(3):
            world.apply(batch, round_, parts=round_ == 1)
        seen.append(progress())
        stored.append(world.rekeying().stored_bytes)
    assert seen == [(0, 2, 0, 4, 0.0, 300.0), (1, 2, 3, 4, 100.0, 300.0), (2, 2, 4, 4, 300.0, 300.0)]
    assert stored == [50, 100]


def test_a_view_shows_every_request_at_once() -> None:
    world = World(stages=1)
    seen = []
    for request in (
        events.RekeyRequested("r1", (TO_OTHER,), (1.0,)),
        events.PauseRequested("r1"),
        events.ResumeRequested("r1"),
        events.CancelRequested("r1"),
        events.RekeyRequested("r2", (TO_OTHER,), (1.0,), paused=True),
    ):
        world.hear(request)
        seen.append((world.rekeying().id, world.rekeying().is_paused, world.rekeying().is_cancelled))
    assert seen == [
        ("r1", False, False),
        ("r1", True, False),
        ("r1", False, False),
        ("r1", False, True),
        ("r2", True, False),
    ]


def test_a_story_keeps_its_newest_lines() -> None:
    world = World(stages=1)
    world.request(TO_OTHER)
    for number in range(1_500):
        world.hear(events.ChangeNoted("r1", str(number)))
    story = world.rekeying().story
    assert (len(story), story[0], story[-1]) == (1_000, "500", "1499")


def test_a_portion_waits_for_the_nodes_of_units_that_have_not_taken_it() -> None:
    world = World(stages=1)
    routing = world.routing.with_assignment(Assignment.even(TASKS, nodes=("node-1", "node-2")), 0)
    world.coordinator.placement.commit(routing)
    world.coordinator.placement.reset()
    world.request(TO_OTHER)
    world.log(0)
    assert world.rekeying().awaited == ("node-1", "node-2")
    mine = tuple(unit for unit in world.units if world.coordinator.placement.owner(unit) == "node-1")
    for round_ in range(2):
        world.hear(StepApplied(*world.node, Position(Batch(0), round_), mine, None, ()))
    assert world.rekeying().awaited == ("node-2",)


def test_nodes_that_a_portion_waits_for_are_in_order() -> None:
    rekeyings = Rekeyings()
    rekeyings.begin(events.RekeyRequested("r1", (TO_OTHER,), (1.0,)))
    for awaited in (("node-2", "node-10", "node-1"), ("node-3",)):
        view = rekeyings.view(awaited)
        assert view is not None
        assert view.awaited == tuple(sorted(awaited))


def test_what_is_committed_before_the_orders_is_no_state_of_a_key() -> None:
    rekeyings = Rekeyings()
    rekeyings.begin(events.RekeyRequested("r1", (TO_OTHER,), (1.0,)))
    before = Groupings(TASKS, (TableGrouping(),))
    assert rekeyings.start_portion(Batch(7), before) is not None
    for is_regrouped, log_bytes in ((False, 1), (True, 10), (False, 100)):
        rekeyings.round_committed(Batch(7), is_regrouped=is_regrouped, log_bytes=log_bytes)
    view = rekeyings.view(())
    assert view is not None
    assert view.stored_bytes == 100


def test_another_driver_ends_a_batch_whose_orders_are_committed() -> None:
    before = World(stages=1)
    before.request(TO_OTHER)
    before.log(0)
    after = World(stages=1, manifest=before.coordinator.manifest)
    assert after.routing.groupings.by_stage == OTHER[:1]
    after.apply(0, 0)
    after.apply(0, 1, parts=True)
    assert after.shapes() == [(0, 2, True, False)]
    assert len(after.rounds[-1].logs) == 1


def test_another_driver_ends_a_batch_that_awaited_orders_without_them() -> None:
    before = World(stages=1)
    before.request(TO_OTHER)
    before.holds_back = True
    before.log(0)
    before.commit(before.rounds[0])
    after = World(stages=1, manifest=before.coordinator.manifest)
    after.apply(0, 0)
    assert after.shapes() == [(0, 1, True, False)]
    assert after.routing.groupings.by_stage == EMPTY[:1]


def test_a_request_after_a_restart_follows_the_parts_of_the_one_before() -> None:
    before = World(stages=1)
    before.request(TO_OTHER)
    before.log(0)
    after = World(stages=1, manifest=before.coordinator.manifest)
    after.request(BACK_HOME)
    after.apply(0, 0)
    after.apply(0, 1, parts=True)
    after.apply(0, 2)
    after.apply(0, 3)
    after.apply(0, 4)
    assert after.shapes() == [(0, 2, False, False), (0, 3, False, True), (0, 4, True, False)]
    assert after.routing.groupings.by_stage == EMPTY[:1]


def test_guests_are_units_of_the_job() -> None:
    world = World()
    assert UnitId(1, 3, guests=True) in {handle.unit for handle in world.sent[0].units}


def protecting(*hashes: int, stages: int = 2) -> Manifest:
    """Return the manifest of a job that continues with these protected keys, which are not among guests yet."""
    groupings = Groupings(TASKS, (EMPTY[0].protect(hashes), *EMPTY[1:stages]))
    routing = Routing(Assignment.even(TASKS, 1), groupings)
    return Manifest.first([unit for stage in range(stages) for unit in routing.units(stage)], routing.to_json())


@pytest.mark.parametrize("stages", [1, 2])
def test_keys_that_have_become_protected_join_the_guests_with_the_next_batch(stages: int) -> None:
    world = World(stages=stages, manifest=protecting(5, 17, stages=stages))
    assert world.coordinator.view().rekeying_is_due
    world.log(0)
    world.apply(0, 0)
    regrouping = world.rounds[-1].regrouping
    assert regrouping is not None
    moved = {(source, target) for source, orders in regrouping.orders.items() for target in orders.targets.tolist()}
    assert moved == {(UnitId(0, 1).number, UnitId(0, 1, guests=True).number)}
    world.apply(0, 1, parts=True)
    assert world.shapes() == [(0, 0, False, False), (0, 1, False, True), (0, 2, True, False)]
    world.apply(0, 2)
    view = world.coordinator.view()
    assert (view.rekeying_is_due, view.rekeying, view.published_batch) == (False, None, -1)
    world.log(1, epoch=1)
    world.apply(1, 0)
    assert not any(has_orders for batch, _, _, has_orders in world.shapes() if batch == 1)


def test_a_request_waits_until_protected_keys_are_among_guests() -> None:
    world = World(manifest=protecting(5))
    world.request(TO_OTHER)
    world.log(0)
    world.apply(0, 0)
    assert world.rekeying().is_idle
    world.apply(0, 1, parts=True)
    world.apply(0, 2)
    assert world.shapes()[2:] == [(0, 2, False, False), (0, 3, False, True)]
    world.apply(0, 3, parts=True)
    world.apply(0, 4)
    assert (world.rekeying().is_over, world.rekeying().stored_bytes) == (True, 50)
    grouping = world.routing.groupings[0]
    assert isinstance(grouping, TableGrouping)
    assert dict(grouping.table) == {5: 1, 17: 3}
