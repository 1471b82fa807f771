"""What the control plane reads of a running job: each task once, also while it moves; how long nodes worked."""

from types import SimpleNamespace
from typing import Any

from elastic.control import NodeCounters, TaskCounters, Vitals
from elastic.routing import IntervalRouting, slot_of
from elastic.runtime.job_cluster import JobCluster
from elastic.runtime.node.busy import BusyClock
from migration import Assignment


def cluster_of(nodes: dict[str, dict[str, Any]], serving: list[str]) -> JobCluster:
    """Two nodes with two tasks each; `nodes` is what they said last."""
    routing = IntervalRouting(Assignment.even(tasks=4, nodes=2))
    status = {"nodes": nodes, "serving": serving, "batches_ahead": 3}
    controller: Any = SimpleNamespace(status=lambda: status, committed_routing=lambda: routing)
    intake: Any = SimpleNamespace(settings=SimpleNamespace(max_batches_ahead=4))
    stream: Any = None  # only a restart needs it
    return JobCluster(controller, intake, stream, check_room=lambda _: None)


def test_a_task_that_moves_is_counted_where_it_was_committed_and_not_twice() -> None:
    source = {"incarnation": "node-1.1", "units": [[slot_of(0, 0), 10, 1.0, 100], [slot_of(0, 1), 20, 2.0, 200]]}
    target = {"incarnation": "node-2.1", "units": [[slot_of(0, 1), 5, 0.5, 200], [slot_of(0, 2), 30, 3.0, 300]]}
    found = cluster_of({"node-1": source, "node-2": target}, ["node-1", "node-2"]).counters()
    assert found == {
        0: TaskCounters(10, 1.0, 100, "node-1.1"),
        1: TaskCounters(20, 2.0, 200, "node-1.1"),
        2: TaskCounters(30, 3.0, 300, "node-2.1"),
    }


def test_the_stages_of_a_task_are_added_up() -> None:
    units = [[slot_of(0, 0), 10, 1.0, 100], [slot_of(1, 0), 7, 0.5, 11]]
    found = cluster_of({"node-1": {"incarnation": "node-1.1", "units": units}}, ["node-1"]).counters()
    assert found == {0: TaskCounters(17, 1.5, 111, "node-1.1")}


def test_nodes_that_are_starting_or_lost_have_no_vitals() -> None:
    up: dict[str, Any] = {"incarnation": "node-1.1", "busy_seconds": 2.5, "waiting_steps": 3}
    silent: dict[str, Any] = {"incarnation": "node-2.2"}
    idle: dict[str, Any] = {"incarnation": "node-3.1", "busy_seconds": 0.1}
    nodes = {"node-1": up, "node-2": silent, "node-3": idle}
    assert cluster_of(nodes, ["node-1", "node-2"]).vitals() == Vitals(
        {"node-1": NodeCounters("node-1.1", 2.5, 3)}, 3, 4
    )


def test_a_busy_clock_runs_except_while_its_thread_waits() -> None:
    now = 100.0
    busy = BusyClock(lambda: now)
    now += 2.0
    assert busy.seconds() == 2.0  # in the middle of a step
    with busy.waiting():
        now += 5.0
        assert busy.seconds() == 2.0
    assert busy.seconds() == 2.0
    now += 1.0
    with busy.waiting():
        now += 4.0
    assert busy.seconds() == 3.0
