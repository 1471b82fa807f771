"""The driver's loop and its views: one frozen view for each event, and the id of the event in all that follows."""

import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from elastic.core import commands, events
from elastic.core.coordinator import Coordinator
from elastic.core.messages import Heartbeat, NodeJoined
from elastic.core.view import JobView
from elastic.driver.event_loop import EventLoop
from elastic.driver.views import Views
from elastic.errors import JobStopped, NodeInUse, UnknownEvent
from tests.elastic.driver.local_job import until
from tests.elastic.driver.parts import make_coordinator


class ObservedViews(Views):
    """Keeps every view that is published."""

    def __init__(self, first: JobView) -> None:
        super().__init__("job", first)
        self.published: list[JobView] = []

    def publish(self, view: JobView) -> None:
        self.published.append(view)
        super().publish(view)


class Loop:
    """A loop whose commands are recorded with their causes, and when each was given."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.views = ObservedViews(coordinator.view())
        self.executed: list[tuple[Any, str, int]] = []  # the command, its cause, how many views were published
        kinds = (commands.StartNode, commands.CommitEpoch, commands.StopNode, commands.Send)
        self.loop = EventLoop(coordinator, self.views, dict.fromkeys(kinds, self._record))

    def post(self, event: Any, cause: str = "") -> JobView:
        number = self.loop.post(event, cause)
        return self.views.wait_for(lambda view: view.handled >= number, 10)

    def incarnation(self, node: str) -> str:
        found = self.views.latest.node(node)
        assert found is not None
        return found.incarnation

    def _record(self, command: Any, cause: str) -> None:
        self.executed.append((command, cause, len(self.views.published)))


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(make_coordinator())
    loop.loop.start()
    yield loop
    assert loop.loop.close(10)


def test_an_unknown_event_is_refused_by_its_name() -> None:
    with pytest.raises(UnknownEvent, match="has no handler for str: an event") as refused:
        make_coordinator().handle("an event")
    assert refused.value.kind == "str"


def test_one_frozen_view_is_published_for_each_event_in_order(loop: Loop) -> None:
    numbers = [loop.loop.post(events.StartRequested(f"node-{number}")) for number in range(3, 9)]
    loop.views.wait_for(lambda view: view.handled >= numbers[-1], 10)
    assert [view.handled for view in loop.views.published] == numbers == [1, 2, 3, 4, 5, 6]
    assert [len(view.nodes) for view in loop.views.published] == [3, 4, 5, 6, 7, 8]
    with pytest.raises(dataclasses.FrozenInstanceError):
        loop.views.latest.handled = 0  # type: ignore[misc]


def test_a_view_does_not_change_when_later_events_are_handled(loop: Loop) -> None:
    before = loop.post(events.StartRequested("node-3"))
    nodes, tasks = before.nodes, before.tasks
    loop.post(NodeJoined("node-3", loop.incarnation("node-3"), "an address"))
    assert (before.nodes, before.tasks, before.handled) == (nodes, tasks, 1)
    assert not before.nodes[-1].address
    assert loop.views.latest.nodes[-1].address == "an address"


def test_the_view_is_published_before_the_commands_are_started(loop: Loop) -> None:
    loop.post(events.StartRequested("node-3"))
    until(lambda: len(loop.executed) == 3)
    assert [(cause, published) for _, cause, published in loop.executed] == [("e0", 0), ("e0", 0), ("e1", 1)]


def test_the_cause_of_a_command_is_the_id_of_its_event(loop: Loop) -> None:
    loop.post(events.SnapshotDue())
    loop.post(NodeJoined("node-1", loop.incarnation("node-1"), "an address", cause="e0"), "e0")
    until(lambda: len(loop.executed) == 3)
    assert loop.executed[-1][:2] == (commands.CommitEpoch("node-1 joined"), "e2")


def test_the_story_has_every_decision_but_no_heartbeats_that_changed_nothing(loop: Loop) -> None:
    loop.post(events.StartRequested("node-3"), "e9")
    loop.post(Heartbeat("node-1", loop.incarnation("node-1")))
    loop.post(events.SnapshotDue())
    first, second = loop.loop.story()
    assert first.startswith("e1 (cause e9) StartRequested(node='node-3') -> StartNode(")
    assert second == "e3 (cause none) SnapshotDue() -> nothing"


def test_a_loop_that_fails_ends_every_wait_with_its_error(caplog: pytest.LogCaptureFixture) -> None:
    broken = Loop(make_coordinator())
    broken.loop.start()
    broken.loop.post("no event")  # type: ignore[arg-type]
    with pytest.raises(UnknownEvent):
        broken.views.wait_for(lambda _: False, 10)
    assert broken.loop.close(10)
    assert "the driver's loop failed" in caplog.text


def test_a_wait_returns_the_first_view_that_meets_its_condition() -> None:
    views = Views("job", make_coordinator().view())
    found: list[JobView] = []
    waiting = threading.Thread(target=lambda: found.append(views.wait_for(lambda view: view.handled == 7, 10)))
    waiting.start()
    for handled in (6, 7):
        views.publish(dataclasses.replace(views.latest, handled=handled))
    waiting.join(10)
    assert [view.handled for view in found] == [7]


def test_a_wait_that_takes_too_long_names_what_it_waited_for() -> None:
    views = Views("job", make_coordinator().view())
    with pytest.raises(TimeoutError, match=r"timed out after 0\.01 s waiting for a batch\."):
        views.wait_for(lambda _: False, 0.01, "a batch")


@pytest.mark.parametrize("already", [True, False])
def test_a_failure_ends_waits_with_a_copy_of_its_error_for_each(already: bool) -> None:
    views, error = Views("job", make_coordinator().view()), NodeInUse("node-1", [0])
    if already:
        views.fail(error)
    else:
        threading.Timer(0.05, lambda: views.fail(error)).start()
    for _ in range(2):
        with pytest.raises(NodeInUse) as raised:
            views.wait_for(lambda _: False, 10)
        assert raised.value is not error
    views.fail(ValueError("another"))
    views.close()
    assert views.error is error
    assert views.wait_for(lambda _: True) is views.latest  # what is met is met


def test_a_close_ends_waits_and_is_no_failure() -> None:
    views = Views("job", make_coordinator().view())
    threading.Timer(0.05, views.close).start()
    with pytest.raises(JobStopped):
        views.wait_for(lambda _: False, 10)
    views.fail(ValueError("too late"))
    assert views.error is None


def test_a_condition_may_depend_on_something_outside_the_view() -> None:
    views, ready = Views("job", make_coordinator().view()), threading.Event()

    def change() -> None:
        ready.set()
        views.notify()

    threading.Timer(0.05, change).start()
    views.wait_for(lambda _: ready.is_set(), 10)
