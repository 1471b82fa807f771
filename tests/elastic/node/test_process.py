"""A node from its start to its end: what it reports, in which order it works, and when it leaves."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from elastic.core.ids import Batch, Epoch
from elastic.core.messages import (
    ApplyStep,
    CaughtUp,
    NodeFailed,
    NodeJoined,
    NodeReport,
    ReleaseUnits,
    SnapshotTaken,
    StepApplied,
    StepEnded,
    StepOverdue,
    StepStarted,
    TakeSnapshot,
    UnitsInstalled,
    UnitsReleased,
)
from elastic.core.steps import Position
from elastic.node.process import NodeProcess
from elastic.operators import Stage
from elastic.routing import hash_keys
from elastic.wire import PeerUnavailable, Refused
from elastic.wire.signing import seal, unseal
from storage.errors import StoreUnavailable
from tests.elastic.node.context import TOKEN, describe, spec_of
from tests.elastic.node.network import CuttableNetwork
from tests.elastic.node.operators import Blocked, History
from tests.elastic.node.scripted_driver import ROUTING, UNITS, RunningNode, ScriptedDriver, pause
from tests.elastic.node.states import LEASE, wait_until

Start = Callable[..., RunningNode]


@pytest.fixture
def start() -> Iterator[Start]:
    nodes: list[RunningNode] = []
    Blocked.entered.clear()
    Blocked.released.clear()

    def start_node(operator: Any = None, **settings: Any) -> RunningNode:
        node = RunningNode(operator or History(), **settings)
        nodes.append(node)
        return node

    yield start_node
    Blocked.released.set()
    for node in nodes:
        node.close()


def values_of(node: RunningNode, key: int) -> list[int]:
    """Return the values that the unit of a key has seen, in order."""
    unit = number_of(key)
    secret = node.process._context.secret
    answer = node.network.connect(node.address, TOKEN).call(
        "lookup", {"unit": unit, "key": seal(((key,), None), secret)}
    )
    number, _batch, found = unseal(answer, secret)
    assert number == unit
    values: list[int] = found
    return values


def number_of(key: int) -> int:
    hashes = hash_keys([pa.chunked_array([pa.array([key])])])
    return int(ROUTING.unit_numbers(hashes, 0)[0])


def test_a_node_joins_installs_its_units_takes_steps_and_leaves(start: Start) -> None:
    node = start()
    [joined] = node.driver.wait_for(NodeJoined)
    assert (joined.node, joined.incarnation, joined.address) == ("node-1", "node-1.1", node.address)
    node.install()
    [installed] = node.driver.wait_for(UnitsInstalled)
    assert (set(installed.units), installed.cause) == (set(UNITS), "e0")
    node.apply(node.step(0, (1, 10), (2, 20)))
    applied = node.driver.wait_for(StepApplied)[0]
    assert (applied.position, applied.units, applied.rows, applied.cause) == (Position(Batch(0), 0), UNITS, 2, "e1")
    assert applied.results is not None
    assert node.leave() == "the driver asked it to leave"
    assert not node.driver.of(NodeFailed)


def test_reports_that_the_driver_does_not_acknowledge_are_repeated_until_it_does(start: Start) -> None:
    node = start()
    node.install()
    node.driver.wait_for(UnitsInstalled)
    node.network.cut_off.add(node.driver.endpoint.address)
    node.apply(node.step(0, (1, 10)))
    node.apply(node.step(1, (1, 11)))
    wait_until(lambda: node.process._host.done_batch() == 1)
    pause()
    assert not node.driver.of(StepApplied)
    node.network.cut_off.clear()
    assert [report.position.batch for report in node.driver.wait_for(StepApplied, 2)] == [0, 1]


def test_a_node_whose_incarnation_the_driver_refuses_leaves(start: Start) -> None:
    node = start(node_timeout_seconds=60.0)
    node.driver.wait_for(NodeJoined)
    node.driver.refuses = True
    node.thread.join(10)
    assert node.left == ["node-1.1 was replaced"]


def test_a_node_whose_report_the_driver_refuses_leaves_and_sends_no_other(start: Start) -> None:
    node = start(heartbeat_seconds=60.0)
    node.install()
    node.driver.wait_for(UnitsInstalled)

    all_sent = threading.Event()

    def refuse(report: NodeReport) -> None:
        if isinstance(report, StepApplied):
            assert all_sent.wait(10)
            raise Refused("node-1.1 was replaced")

    node.driver.before_report = refuse
    for batch in range(3):
        node.apply(node.step(batch, (1, batch)))
    all_sent.set()
    node.thread.join(10)
    assert node.left == ["node-1.1 was replaced"]
    assert not node.driver.of(StepApplied)


def test_a_node_leaves_when_the_driver_is_silent(start: Start) -> None:
    node = start(node_timeout_seconds=0.05)
    node.driver.wait_for(NodeJoined)
    node.network.cut_off.add(node.driver.endpoint.address)
    node.thread.join(10)
    assert node.left == ["the driver was silent for 0.3 s"]


def test_commands_are_handled_once_in_the_order_of_their_numbers(start: Start) -> None:
    node = start()
    node.install()
    node.driver.wait_for(UnitsInstalled)
    steps = [node.step(batch, (7, 10 + batch)) for batch in range(3)]
    for batch in (2, 0, 0, 1, 2):
        node.send(ApplyStep(Epoch(1), steps[batch]), number=1 + batch)
    wait_until(lambda: node.process._host.done_batch() == 2)
    assert values_of(node, 7) == [10, 11, 12]
    wait_until(lambda: len(node.driver.of(StepApplied)) == 3)
    pause()
    assert [report.position.batch for report in node.driver.of(StepApplied)] == [0, 1, 2]


def test_rows_of_a_step_are_taken_in_the_order_of_the_log_whatever_arrives_first(start: Start) -> None:
    node = start()
    node.install()
    node.driver.wait_for(UnitsInstalled)
    logs = [node.append(0, (7, partition), partition=partition) for partition in (2, 0, 1)]
    step = replace(node.step(0), logs=tuple(sorted(logs)))
    node.apply(step)
    wait_until(lambda: node.process._host.done_batch() == 0)
    assert values_of(node, 7) == [0, 1, 2]


def test_output_that_the_driver_has_is_not_reported_again(start: Start) -> None:
    node = start()
    steps = [node.step(batch, (1, batch)) for batch in range(3)]
    node.install(*steps, reported=Position(Batch(1), 0))
    [caught_up] = node.driver.wait_for(CaughtUp)
    assert (caught_up.units, caught_up.steps, caught_up.replayed_rows, caught_up.cause) == (4, 3, 2, "e0")
    wait_until(lambda: bool(node.driver.of(StepApplied)))
    pause()
    assert [report.position.batch for report in node.driver.of(StepApplied)] == [2]


def test_a_careful_node_takes_a_step_only_after_the_driver_knows_of_it(start: Start) -> None:
    node = start(Blocked(), node_timeout_seconds=60.0)
    node.driver.wait_for(NodeJoined)
    allowed = threading.Event()
    refused: list[NodeReport] = []

    def hold(report: NodeReport) -> None:
        if isinstance(report, StepStarted) and not allowed.is_set():
            refused.append(report)
            node.network.cut_off.add(node.driver.endpoint.address)

    node.driver.before_report = hold
    node.install(node.step(0, (1, 10)), careful=True)
    wait_until(lambda: bool(refused))
    pause()
    assert not Blocked.entered.is_set()
    allowed.set()
    node.network.cut_off.clear()
    assert Blocked.entered.wait(10)
    [ended] = node.driver.wait_for(StepEnded)
    assert (ended.position, ended.cause) == (Position(Batch(0), 0), "e0")
    node.driver.wait_for(CaughtUp)
    node.apply(node.step(1, (1, 11)))
    node.driver.wait_for(StepApplied, 2)
    assert len(node.driver.of(StepEnded)) == 1  # it has caught up, and is careful no longer


def test_at_a_suspected_step_a_careful_node_names_each_unit(start: Start) -> None:
    node = start()
    step = node.step(0, *((key, key) for key in range(20)))
    node.install(step, careful=True, suspects=(step.position,))
    node.driver.wait_for(CaughtUp)
    assert [report.units for report in node.driver.of(StepStarted)] == [(unit,) for unit in UNITS]


def test_an_operator_that_raises_fails_the_node_with_the_cause_of_the_step(start: Start) -> None:
    node = start(Blocked())
    node.install()
    node.driver.wait_for(UnitsInstalled)
    node.apply(node.step(0, (1, -2)))
    [failed] = node.driver.wait_for(NodeFailed)
    assert failed.error["type"] == "OperatorFailed"
    assert failed.cause == "e1"
    node.thread.join(10)
    assert node.left[0].startswith("failed: ")


def test_a_step_that_does_not_end_is_reported_and_ends_the_process(start: Start) -> None:
    node = start(Blocked(), step_timeout_seconds=0.05)
    node.install()
    node.driver.wait_for(UnitsInstalled)
    node.apply(node.step(0, (1, -1)))
    overdue = node.driver.wait_for(StepOverdue)[0]
    assert (overdue.position, overdue.cause) == (Position(Batch(0), 0), "e1")
    assert len(overdue.units) == 1
    assert overdue.seconds > 0.05
    wait_until(lambda: bool(node.exits))
    assert node.exits[0] == 75
    Blocked.released.set()


def test_a_killed_node_reports_and_writes_nothing_more(start: Start) -> None:
    node = start(Blocked())
    node.install()
    node.driver.wait_for(UnitsInstalled)
    node.apply(node.step(0, (1, -1)))
    assert Blocked.entered.wait(10)
    objects = set(node.store.list(""))
    reports, heartbeats = len(node.driver.reports), len(node.driver.heartbeats)
    node.process.kill()
    assert node.network.find(node.address) is None
    pause()
    Blocked.released.set()
    node.thread.join(10)
    assert node.left == ["it was killed"]
    pause()
    assert len(node.driver.reports) == reports
    assert len(node.driver.heartbeats) <= heartbeats + 1  # one may have been on its way
    assert set(node.store.list("")) == objects


def test_heartbeats_show_the_running_step_and_what_waits(start: Start) -> None:
    node = start(Blocked())
    node.install()
    node.driver.wait_for(UnitsInstalled)
    node.apply(node.step(0, (1, -1)))
    assert Blocked.entered.wait(10)
    for batch in (1, 2):
        node.apply(node.step(batch, (1, 5)))

    def is_shown() -> bool:
        latest = node.driver.heartbeats[-1:]
        return any(heartbeat.running is not None and heartbeat.pending_steps == 3 for heartbeat in latest)

    wait_until(is_shown)
    running = node.driver.heartbeats[-1].running
    assert running is not None
    assert running.position == Position(Batch(0), 0)
    assert running.tasks == [number_of(1)]
    Blocked.released.set()
    wait_until(lambda: node.driver.heartbeats[-1].done_batch == 2)
    last = node.driver.heartbeats[-1]
    assert last.running is None
    assert (last.epoch, last.loading, last.pending_steps) == (1, 0, 0)
    assert {statistics.unit for statistics in last.units} == set(UNITS)
    wait_until(lambda: sum(statistics.rows for statistics in node.driver.heartbeats[-1].units) == 3)


def test_a_snapshot_and_a_release_answer_with_the_cause_of_their_command(start: Start) -> None:
    node = start()
    node.install()
    node.driver.wait_for(UnitsInstalled)
    node.apply(node.step(0, (1, 10)))
    node.driver.wait_for(StepApplied)
    node.send(TakeSnapshot(Epoch(1), LEASE, dict.fromkeys(UNITS, Batch(-1)), cause="e8"))
    [taken] = node.driver.wait_for(SnapshotTaken)
    assert (len(taken.states), len(taken.unchanged), taken.cause) == (1, 3, "e8")
    node.send(ReleaseUnits(Epoch(1), UNITS[:2], LEASE, cause="e9"))
    [released] = node.driver.wait_for(UnitsReleased)
    assert ([ref.unit for ref in released.states], released.cause) == (list(UNITS[:2]), "e9")


def test_an_unknown_command_is_refused(start: Start) -> None:
    node = start()
    node.driver.wait_for(NodeJoined)
    with pytest.raises(Refused, match="no message has the kind 'adopt'"):
        node.network.connect(node.address, TOKEN).call("command", {"number": 0, "kind": "adopt", "message": {}})


def test_a_node_whose_operator_cannot_open_closes_what_it_opened() -> None:
    class NoLicence(History):
        def open(self) -> None:
            raise OSError("there is no licence")

    network = CuttableNetwork()
    driver = ScriptedDriver(network)
    spec = spec_of(describe([Stage(NoLicence(), ("key",))]), driver=driver.endpoint.address)
    process = NodeProcess(spec, network)
    with pytest.raises(OSError, match="there is no licence"):
        process.run()
    assert network.find(process._endpoint.address) is None
    assert not driver.reports


def test_a_store_that_is_unavailable_delays_output_and_loses_none(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = start()
    node.install()
    node.driver.wait_for(UnitsInstalled)
    steps = [node.step(batch, (1, batch)) for batch in range(2)]
    store: Any = node.process._context.store
    put, failures = store.put, [1, 2]

    def fail_twice(key: str, data: Any) -> None:
        if failures:
            failures.pop()
            raise StoreUnavailable(store.url, "put", key, "it does not answer")
        put(key, data)

    monkeypatch.setattr(store, "put", fail_twice)
    for step in steps:
        node.apply(step)
    assert [report.position.batch for report in node.driver.wait_for(StepApplied, 2)] == [0, 1]


def test_the_driver_holds_a_call_to_its_own_incarnation_only_until_the_node_leaves(start: Start) -> None:
    node = start()
    [joined] = node.driver.wait_for(NodeJoined)
    peer = node.network.connect(joined.address, TOKEN)
    with pytest.raises(Refused, match=r"node-1\.0 does not listen here"):
        peer.hold({"incarnation": "node-1.0"})
    leaving, dying = peer.hold({"incarnation": "node-1.1"}), start()
    node.leave()
    leaving.wait()  # ends well
    [other] = dying.driver.wait_for(NodeJoined)
    holding = dying.network.connect(other.address, TOKEN).hold({"incarnation": "node-1.1"})
    dying.process.kill()
    with pytest.raises(PeerUnavailable):
        holding.wait()
