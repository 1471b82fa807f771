"""What the control plane reads of a running job: each task once, also while it moves; how long nodes worked."""

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from elastic.control import NodeCounters, TaskCounters, Vitals
from elastic.control.standbys import StandbyCopies
from elastic.core import events
from elastic.core.hand_over import HandOver, MigrationView
from elastic.core.ids import Batch, Task, UnitId
from elastic.core.messages import Heartbeat
from elastic.core.nodes import NodeView
from elastic.core.statistics import RunningStep, UnitStatistics
from elastic.core.steps import Position
from elastic.core.view import JobView
from elastic.driver.views import Views
from elastic.job.cluster import JobCluster
from elastic.node.heartbeat import BusyClock
from migration import Assignment
from tests.elastic.driver.local_job import start_local_job
from tests.elastic.driver.parts import make_context, make_coordinator

CURRENT = Assignment.even(tasks=4, nodes=2)


class ViewedDriver:
    """A driver that has a view, and records what is posted."""

    def __init__(self, view: JobView) -> None:
        self.views = Views("job", view)
        self.posted: list[Any] = []
        self.requested: list[Any] = []  # of these: the caller waited until they were handled

    @property
    def view(self) -> JobView:
        return self.views.latest

    def post(self, event: Any) -> None:
        self.posted.append(event)

    def request(self, event: Any) -> JobView:
        self.posted.append(event)
        self.requested.append(event)
        return self.view


def node(name: str, *, serving: bool = True, silent: bool = False, **heartbeat: Any) -> NodeView:
    heard = None if silent else Heartbeat(name, f"{name}.1", **heartbeat)
    return NodeView(name, f"{name}.1", "", 0, serving, heard)


def cluster_of(*nodes: NodeView, **changes: Any) -> tuple[JobCluster, ViewedDriver]:
    """Two nodes own two tasks each; `nodes` is what nodes reported."""
    driver: Any = ViewedDriver(replace(make_coordinator().view(), nodes=nodes, pending_batches=3, **changes))
    unused: Any = None  # only a restart needs the ingest and the stream
    return JobCluster(make_context(max_pending_batches=4), driver, unused, unused, lambda _: None), driver


def test_a_task_that_moves_is_counted_where_it_was_committed_and_not_twice() -> None:
    source = [UnitStatistics(UnitId(0, 0), 10, 1.0, 100), UnitStatistics(UnitId(0, 1), 20, 2.0, 200)]
    target = [UnitStatistics(UnitId(0, 1), 5, 0.5, 200), UnitStatistics(UnitId(0, 2), 30, 3.0, 300)]
    cluster, _ = cluster_of(node("node-1", units=tuple(source)), node("node-2", units=tuple(target)))
    assert cluster.counters() == {
        0: TaskCounters(10, 1.0, 100, "node-1.1"),
        1: TaskCounters(20, 2.0, 200, "node-1.1"),
        2: TaskCounters(30, 3.0, 300, "node-2.1"),
    }


def test_the_stages_of_a_task_are_added_up() -> None:
    units = (UnitStatistics(UnitId(0, 0), 10, 1.0, 100), UnitStatistics(UnitId(1, 0), 7, 0.5, 11))
    cluster, _ = cluster_of(node("node-1", units=units))
    assert cluster.counters() == {0: TaskCounters(17, 1.5, 111, "node-1.1")}


FOLLOWED = (("node-2",), ("node-2",), ("node-1",), ())


def standbys_of(
    *stages: tuple[bool, int | None],
    protected: tuple[int, ...] = (),
    nodes: tuple[NodeView, ...] = (),
    **ready: list[tuple[int, int]],
) -> StandbyCopies | None:
    """Read the copies of a job with one standby by default; a stage is (whether it is stateless, its standbys)."""
    pipeline: Any = SimpleNamespace(
        stages=[
            SimpleNamespace(operator=SimpleNamespace(stateless=off), standbys=count, protected=protected)
            for off, count in stages
        ]
    )
    view = make_coordinator().view()
    followed = {f"node-{name[1:]}": tuple(UnitId(*unit) for unit in units) for name, units in ready.items()}
    nodes = nodes or (NodeView("node-1", "node-1.1", "10.0.0.1:70", 0, serving=True, executor="17"), node("node-2"))
    routing = replace(view.routing, standbys=FOLLOWED)
    driver: Any = ViewedDriver(replace(view, nodes=nodes, routing=routing, standbys=followed))
    unused: Any = None
    context = replace(make_context(standbys=1), pipeline=pipeline)
    return JobCluster(context, driver, unused, unused, lambda _: None).standbys()


def test_copies_are_the_standbys_that_have_caught_up_in_all_stages_with_state() -> None:
    copies = standbys_of(
        (False, None), (True, None), (False, 1), n2=[(0, 0), (2, 0), (0, 1)], n1=[(0, 2), (2, 2), (0, 3)]
    )
    assert copies is not None
    assert copies.ready == (("node-2",), (), ("node-1",), ())
    assert (copies.routing.standbys, copies.count, copies.hosts) == (FOLLOWED, 1, {"node-1": "10.0.0.1/17"})


def test_the_work_of_a_standby_is_measured_where_units_are_owned_and_followed_by_what_is_committed() -> None:
    def counted(task: int, seconds: float) -> UnitStatistics:
        return UnitStatistics(UnitId(0, task), 100, seconds)

    owner = node("node-1", units=(counted(0, 4.0), counted(1, 6.0)), standbys=(counted(2, 1.0), counted(3, 70.0)))
    follower = node("node-2", units=(counted(2, 10.0), counted(1, 90.0)), standbys=(counted(0, 3.0), counted(1, 2.0)))
    copies = standbys_of((False, 1), nodes=(owner, follower))
    assert copies is not None
    assert copies.share == pytest.approx((3 + 2 + 1) / (4 + 6 + 10))
    unmeasured = standbys_of((False, 1))
    assert unmeasured is not None
    assert unmeasured.share is None


@pytest.mark.parametrize("stages", [((False, 1), (False, 2)), ((True, None),)])
def test_plans_know_no_copies_where_stages_differ_in_their_standbys_or_have_no_state(
    stages: tuple[tuple[bool, int | None], ...],
) -> None:
    assert standbys_of(*stages) is None


def test_plans_know_no_copies_where_only_guests_have_standbys() -> None:
    assert standbys_of((False, 0), protected=(17,), n2=[(0, 0), (0, 1)]) is None
    assert standbys_of((False, 1), protected=(17,), n2=[(0, 0), (0, 1)]) is not None


def test_a_job_whose_standbys_are_not_placed_yet_has_no_copies() -> None:
    cluster, _ = cluster_of(node("node-1"))
    cluster._pipeline = SimpleNamespace(stages=[])  # type: ignore[assignment]
    assert cluster.standbys() is None


def test_nodes_that_are_starting_or_lost_have_no_vitals() -> None:
    up = node("node-1", busy_seconds=2.5, pending_steps=3)
    silent = node("node-2", silent=True)
    starting = node("node-3", serving=False, busy_seconds=0.1)
    cluster, _ = cluster_of(up, silent, starting)
    assert cluster.vitals() == Vitals({"node-1": NodeCounters("node-1.1", 2.5, 3)}, 3, 4)


def test_the_running_steps_are_those_of_the_heartbeats() -> None:
    running = RunningStep(Position(Batch(7), 0), (UnitId(0, 3),), 40.0, 0.5)
    cluster, _ = cluster_of(node("node-1", running=running), node("node-2"))
    [(name, step)] = cluster.steps().items()
    assert (name, step.overdue) == ("node-1", True)
    assert step.text.startswith("batch 7, round 0 of task 3 for ")


def test_requests_about_a_migration_are_posted_to_the_driver() -> None:
    cluster, driver = cluster_of()
    cluster.pause("m1")
    cluster.resume("m1")
    cluster.cancel("m1")
    cluster.note("m1", "a line")
    assert driver.posted == [
        events.PauseRequested("m1"),
        events.ResumeRequested("m1"),
        events.CancelRequested("m1"),
        events.ChangeNoted("m1", "a line"),
    ]


def test_what_ends_a_pause_is_in_effect_when_the_call_returns() -> None:
    # Else a thread that waits for the paused migration would not wait, but poll without a pause.
    cluster, driver = cluster_of()
    cluster.resume("m1")
    cluster.cancel("m1")
    assert driver.requested == driver.posted


IN_FLIGHT = (HandOver("node-1", "node-2", (Task(0),), 1.0),)


@pytest.mark.parametrize(
    ("changes", "settled"),
    [
        ({"mini_migrations": 1}, False),
        ({"mini_migrations": 1, "in_flight": IN_FLIGHT, "is_paused": True}, False),
        ({"mini_migrations": 1, "is_paused": True}, True),
        ({"mini_migrations": 1, "is_cancelled": True}, True),
        ({"mini_migrations": 1, "mini_migrations_done": 1}, True),
        ({"id": "m2"}, True),  # another one has begun
    ],
)
def test_a_wait_ends_when_the_migration_is_over_or_paused_between_two_mini_migrations(
    changes: dict[str, Any], settled: bool
) -> None:
    view = replace(MigrationView("m1", CURRENT), **changes)
    cluster, _ = cluster_of(migration=view)
    assert cluster.wait("m1", 0.01) is settled
    assert cluster.migration("m1") is (view if view.id == "m1" else None)


def test_a_suspended_stream_has_applied_all_that_was_ingested_and_ingests_nothing() -> None:
    local = start_local_job(sink="memory")
    try:
        local.send(1, 2)
        with local.job._cluster.suspended():
            view = local.driver.view
            assert view.published_batch == view.newest_batch
            local.send(1, 2)
            before = local.driver.view.newest_batch
            threading.Event().wait(0.2)
            assert local.driver.view.newest_batch == before
        local.job.process_all_available()
        assert local.job.state(1) == 2
    finally:
        local.close()


def test_a_restart_moves_the_tasks_while_no_node_runs_and_the_stream_goes_on() -> None:
    local = start_local_job(nodes=2, tasks=8)
    try:
        local.send(*range(8))
        local.job.process_all_available()
        before = set(local.launcher.incarnations)
        assert local.job.scale(3, mode="restart").wait(30)
        assert {node.incarnation for node in local.driver.view.nodes}.isdisjoint(before)
        assert len(local.job.assignment().nodes) == 3
        local.send(*range(8))
        local.job.process_all_available()
        assert [local.job.state(key) for key in range(8)] == [2] * 8
    finally:
        local.close()


def test_a_busy_clock_runs_except_while_its_thread_waits() -> None:
    now = 100.0
    busy = BusyClock(lambda: now)
    now += 2.0
    assert busy.seconds() == 2.0  # in the middle of a step
    with busy.pause():
        now += 5.0
        assert busy.seconds() == 2.0
    assert busy.seconds() == 2.0
    now += 1.0
    with busy.pause():
        now += 4.0
    assert busy.seconds() == 3.0
