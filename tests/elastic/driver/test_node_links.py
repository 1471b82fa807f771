"""The driver's links to its nodes: which reports it accepts, what it sends, and when a node counts as lost."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elastic import threads
from elastic.core.events import NodeLost
from elastic.core.ids import Epoch, UnitId
from elastic.core.messages import (
    DropUnits,
    Heartbeat,
    LeaveJob,
    Message,
    NodeJoined,
    NodeReport,
    ReleaseUnits,
    decode_message,
    encode_message,
)
from elastic.driver.node_links import NodeLinks
from elastic.errors import NodeInUse
from elastic.local import LocalNetwork
from elastic.pauses import PauseMeter
from elastic.wire import Peer, Refused
from tests.elastic.driver.local_job import start_local_job, until
from tests.elastic.driver.parts import FakeLauncher, make_context

HEARTBEAT, TIMEOUT = 0.5, 10.0
UNIT = UnitId(0, 1)
RELEASE = ReleaseUnits(Epoch(1), (UNIT,), "a lease")
DROP = DropUnits(Epoch(1), (UNIT,))


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class CountingNetwork(LocalNetwork):
    """Counts the connections to each address."""

    def __init__(self) -> None:
        super().__init__()
        self.connections: list[str] = []

    def connect(self, address: str, token: str) -> Any:
        self.connections.append(address)
        return super().connect(address, token)


class Links:
    """The links of a driver that polls them once in a heartbeat, by a clock that the test moves; one node."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.posted: list[tuple[Any, str]] = []
        self.launcher = FakeLauncher()
        self.network = CountingNetwork()
        self.received: list[tuple[int, Message]] = []
        self.answer: Callable[[Message], None] = lambda _: None
        self.endpoint = self.network.listen("", "token", {"command": self._receive})
        context = make_context(self.network, node_timeout_seconds=TIMEOUT, node_start_seconds=60.0)
        self.links = NodeLinks(context, self.launcher, lambda event, cause: self.posted.append((event, cause)))
        self.links.listen()
        self.links.start("node-1", "node-1.1")
        self.driver: Peer = self.network.connect(self.launcher.driver, "token")
        self.network.connections.clear()
        self._pauses = PauseMeter(2 * HEARTBEAT, clock)

    def report(self, report: NodeReport) -> None:
        self.driver.call("report", encode_message(report))

    def join(self, incarnation: str = "node-1.1") -> None:
        self.report(NodeJoined("node-1", incarnation, self.endpoint.address, 1))

    def overdue_after(self, seconds: float) -> list[str]:
        """Return why nodes count as lost, at a poll that comes so much later than the one before."""
        self.clock.now += seconds
        return [lost.reason for lost in self.links.overdue(self._pauses.measure())]

    def poll_for(self, seconds: float) -> list[str]:
        return [why for _ in range(round(seconds / HEARTBEAT)) for why in self.overdue_after(HEARTBEAT)]

    def _receive(self, document: dict[str, Any]) -> str:
        message = decode_message(document)
        self.received.append((document["number"], message))
        self.answer(message)
        return "accepted"


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Iterator[Links]:
    clock = Clock()
    monkeypatch.setattr(threads, "monotonic", clock)
    links = Links(clock)
    yield links
    links.links.close()


def test_a_report_of_another_incarnation_is_refused_and_not_posted(links: Links) -> None:
    for wrong in (Heartbeat("node-1", "node-1.0"), NodeJoined("node-1", "node-1.2", "a"), Heartbeat("node-2", "x")):
        with pytest.raises(Refused, match="not the current incarnation"):
            links.report(wrong)
    assert links.posted == []
    assert links.network.connections == []


def test_a_report_is_posted_with_the_event_that_caused_it(links: Links) -> None:
    heartbeat = Heartbeat("node-1", "node-1.1", cause="e7")
    links.report(heartbeat)
    assert links.posted == [(heartbeat, "e7")]


def test_a_node_that_repeats_that_it_joined_is_connected_once(links: Links) -> None:
    links.join()
    links.join()
    assert links.network.connections == [links.endpoint.address]
    assert len(links.posted) == 2


def test_a_command_reaches_its_node_in_order_with_its_cause(links: Links) -> None:
    links.join()
    links.links.send("node-1", "node-1.1", RELEASE, "e8")
    links.links.send("node-1", "node-1.1", DROP, "e9")
    until(lambda: len(links.received) == 2)
    assert links.received == [(0, RELEASE), (1, DROP)]
    assert [message.cause for _, message in links.received] == ["e8", "e9"]


def test_commands_to_an_incarnation_that_is_not_current_are_dropped(links: Links) -> None:
    links.join()
    links.links.send("node-1", "node-1.0", RELEASE, "e8")
    links.links.send("node-2", "node-2.1", RELEASE, "e8")
    links.links.send("node-1", "node-1.1", DROP, "e9")
    until(lambda: links.received)
    assert links.received == [(0, DROP)]


@pytest.mark.parametrize("error", [Refused("not that one"), KeyError("a mistake in the handler")])
def test_a_node_that_refuses_a_command_is_replaced_and_gets_no_other(links: Links, error: Exception) -> None:
    def refuse(message: Message) -> None:
        if isinstance(message, DropUnits):
            raise error

    links.answer = refuse
    links.join()
    links.posted.clear()
    for message in (RELEASE, DROP, LeaveJob()):
        links.links.send("node-1", "node-1.1", message, "e1")
    until(lambda: links.launcher.cancelled)
    [(lost, _)] = links.posted
    assert isinstance(lost, NodeLost)
    assert (lost.node, lost.incarnation, lost.failed) == ("node-1", "node-1.1", False)
    assert lost.reason.startswith("it refused a command")
    assert [message for _, message in links.received] == [RELEASE, DROP]
    assert links.launcher.cancelled == ["node-1.1"]


def test_another_incarnation_takes_the_place_of_the_one_before(links: Links) -> None:
    links.join()
    links.links.start("node-1", "node-1.2")
    assert links.launcher.started == ["node-1.1", "node-1.2"]
    assert links.launcher.cancelled == ["node-1.1"]
    with pytest.raises(Refused):
        links.report(Heartbeat("node-1", "node-1.1"))
    links.report(Heartbeat("node-1", "node-1.2"))


def test_a_node_that_stops_is_asked_to_leave_and_one_that_has_not_joined_is_cancelled(links: Links) -> None:
    links.join()
    links.links.start("node-2", "node-2.1")
    for node in ("node-1", "node-2"):
        links.links.stop(node, f"{node}.1")
    until(lambda: links.received)
    assert links.received == [(0, LeaveJob())]
    assert links.launcher.cancelled == ["node-2.1"]
    with pytest.raises(Refused):
        links.report(Heartbeat("node-1", "node-1.1"))


def test_a_node_that_never_starts_and_one_that_is_silent_are_overdue(links: Links) -> None:
    assert links.poll_for(59.0) == []
    links.links.start("node-2", "node-2.1")
    assert links.poll_for(2.0)[0] == "did not start within 60 s"
    links.links.start("node-1", "node-1.2")
    links.join("node-1.2")
    assert links.poll_for(TIMEOUT) == []
    assert links.poll_for(1.0) == ["silent for 10.5 s", "silent for 11.0 s"]


def test_a_driver_that_was_suspended_for_12_s_does_not_declare_its_nodes_lost(links: Links) -> None:
    links.join()
    assert links.poll_for(5.0) == []
    links.report(Heartbeat("node-1", "node-1.1"))
    assert links.overdue_after(12.0) == []
    assert links.poll_for(TIMEOUT - 3 * HEARTBEAT) == []
    assert links.poll_for(4 * HEARTBEAT) != []  # it is silent indeed


def test_a_driver_that_is_always_a_little_late_still_notices_a_lost_node(links: Links) -> None:
    links.join()
    assert [why for _ in range(20) for why in links.overdue_after(4 * HEARTBEAT)] != []


def test_a_node_that_starts_gets_the_time_in_which_the_driver_was_suspended(links: Links) -> None:
    assert links.poll_for(50.0) == []
    assert links.overdue_after(30.0) == []
    assert links.poll_for(8.0) == []
    assert "did not start within 60 s" in links.poll_for(3.0)[0]


def test_a_node_whose_command_handler_fails_is_replaced_and_nothing_is_lost() -> None:
    local = start_local_job(nodes=2)
    try:
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        broken: Any = next(iter(local.launcher.incarnations.values()))
        broken.process._endpoint._actions["command"] = lambda _: 1 // 0
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        assert [local.job.state(key) for key in (1, 2, 3, 4)] == [2, 2, 2, 2]
        assert local.job.status().losses == 1
        assert "it refused a command" in str(local.job.story())
    finally:
        local.close()


def test_a_node_that_owns_tasks_is_not_removed_and_the_caller_gets_an_error() -> None:
    local = start_local_job(nodes=2, tasks=4)
    try:
        with pytest.raises(NodeInUse, match="owns tasks 0, 1") as refused:
            local.driver.remove_node("node-1")
        assert refused.value.tasks == (0, 1)
        assert sorted(node.name for node in local.job.status().nodes) == ["node-1", "node-2"]
        local.driver.remove_node("node-9")  # there is none
    finally:
        local.close()


def test_a_node_that_falls_silent_is_replaced_and_nothing_is_lost() -> None:
    local = start_local_job(nodes=1, node_timeout_seconds=0.5)
    try:
        silent: Any = next(iter(local.launcher.incarnations.values()))
        silent.process._link._closing.set()  # no more heartbeats, and nothing else is reported
        until(lambda: local.status().losses == 1, "the loss")
        local.send(1)
        local.job.process_all_available()
        assert local.job.state(1) == 1
    finally:
        local.close()
