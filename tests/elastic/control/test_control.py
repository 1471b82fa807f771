"""The control plane without a cluster: requests are checked, work is measured, what happened is written down."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import storage
from elastic.control import (
    MODES,
    JobJournal,
    KeyMigration,
    Migration,
    Monitor,
    NodeCounters,
    Scaler,
    ScaleRequest,
    TaskCounters,
    TaskMigration,
    Vitals,
)
from elastic.control.key_portions import KeyPortion
from elastic.core.events import MigrationRequested, RekeyRequested
from elastic.errors import InvalidRequest, MigrationFailed, MigrationInProgress, TooFewSlots
from elastic.routing import KeyTargets
from migration import Assignment, KeyLoads, Workload, plan_keys
from migration.errors import Infeasible
from storage.journal import MigrationEnded
from tests.elastic.paper_nodes import PaperNodes

TASKS = 8


class PaperCluster(PaperNodes):
    """Carries everything out as soon as `go` is set."""

    def __init__(self, room_for: int = 10) -> None:
        super().__init__(TASKS, 2, room_for)
        self.suspensions = 0

    def counters(self) -> dict[int, TaskCounters]:
        return {task: TaskCounters(10, 1.0, 100) for task in range(TASKS)}

    def vitals(self) -> Vitals:
        return Vitals({node: NodeCounters(node, 0.0, 0) for node in self.nodes}, 0, 4)

    def begin(self, request: MigrationRequested | RekeyRequested) -> None:
        super().begin(request)
        self.go.wait(10)
        self.carry_out()

    def wait(self, migration: str, seconds: float) -> bool:
        if self.go.wait(min(seconds, 0.01)):
            self.carry_out()
        threading.Event().wait(min(seconds, 0.01))
        return self.has_settled(migration)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self.suspensions += 1
        yield


def scaler_of(cluster: PaperCluster) -> tuple[Scaler, JobJournal]:
    journal = JobJournal(storage.open("memory:"), "job")
    return Scaler(cluster, Monitor(TASKS), journal), journal


@pytest.mark.parametrize(
    ("reserves", "options", "mode"),
    [
        (False, {}, "progressive"),
        (True, {}, "warm"),
        (True, {"mode": "live"}, "live"),
        (True, {"transfer": "direct"}, "progressive"),
        (True, {"bytes_per_node": 1e6}, "progressive"),
    ],
)
def test_a_job_with_standbys_or_spares_moves_warm_unless_the_request_says_otherwise(
    reserves: bool, options: dict[str, Any], mode: str
) -> None:
    assert ScaleRequest(nodes=3, **options).choose_mode(has_reserves=reserves).mode == mode


def test_a_migration_says_which_mode_was_chosen() -> None:
    cluster = PaperCluster()
    cluster.reserves = True
    scaler, journal = scaler_of(cluster)
    migration = scaler.scale(ScaleRequest(nodes=3))
    assert migration.wait(10)
    assert migration.mode == "warm"
    assert [record["mode"] for record in journal.read() if record["kind"] == "began"] == ["warm"]


@pytest.mark.parametrize("mode", MODES)
def test_nodes_start_before_a_migration_and_stop_after_it(mode: str) -> None:
    cluster = PaperCluster()
    scaler, journal = scaler_of(cluster)
    assert scaler.scale(ScaleRequest(nodes=4, mode=mode)).wait(10)
    assert cluster.nodes == set(cluster.current.nodes) == {"node-1", "node-2", "node-3", "node-4"}
    assert scaler.scale(ScaleRequest(remove=("node-1", "node-3"), mode=mode)).wait(10)
    assert cluster.nodes == set(cluster.current.owners) == {"node-2", "node-4"}
    assert cluster.suspensions == (2 if mode == "suspend" else 0)
    assert cluster.stops == (2 if mode == "restart" else 0)
    records = list(journal.read())
    assert [record["kind"] for record in records] == ["began", "ended", "began", "ended"]
    assert [(r["nodes_before"], r["nodes_after"]) for r in records if r["kind"] == "ended"] == [(2, 4), (4, 2)]


def test_a_cluster_without_room_fails_the_request_and_nothing_changed() -> None:
    cluster = PaperCluster(room_for=3)
    scaler, journal = scaler_of(cluster)
    before = cluster.current
    with pytest.raises(MigrationFailed, match="nodes"):
        scaler.scale(ScaleRequest(nodes=4)).wait(10)
    assert cluster.current is before
    assert cluster.nodes == set(before.nodes)
    assert [record.get("outcome") for record in journal.read()] == [None, "failed"]
    assert scaler.scale(ScaleRequest(nodes=3)).wait(10)


def test_a_request_beyond_the_task_slots_is_refused_before_anything_starts() -> None:
    cluster = PaperCluster()
    cluster.slots = 4
    scaler, journal = scaler_of(cluster)
    for refused in (ScaleRequest(nodes=4), ScaleRequest(add=2), ScaleRequest(nodes=8, mode="restart")):
        for ask in (scaler.plan, scaler.scale):
            with pytest.raises(TooFewSlots):
                ask(refused)
    assert cluster.nodes == set(cluster.current.nodes) == {"node-1", "node-2"}
    assert list(journal.read()) == []
    assert scaler.current is None
    assert scaler.scale(ScaleRequest(nodes=3)).wait(10)


def test_nodes_that_leave_need_no_free_slot() -> None:
    cluster = PaperCluster()
    cluster.slots = 2  # an executor was lost: now there are fewer than the nodes need
    scaler, _ = scaler_of(cluster)
    assert scaler.scale(ScaleRequest(nodes=1)).wait(10)


def test_negligible_work_is_planned_as_equal_and_the_plan_says_so() -> None:
    """A few rows in one task weigh nothing: what one batch happened to bring must not decide where tasks go."""

    class Idle(PaperCluster):
        def counters(self) -> dict[int, TaskCounters]:
            return {task: TaskCounters(1, 0.0015 if task == 5 else 0.0, 100) for task in range(TASKS)}

    scaler, _ = scaler_of(Idle())
    made = scaler.plan(ScaleRequest(nodes=4, relax=False))
    assert sorted(made.loads) == [2.0, 2.0, 2.0, 2.0]
    assert made.note == "equal work assumed: all tasks together worked 0.0015 s in the last 60 s"
    assert made.note in str(made)
    assert made.to_dict()["note"] == made.note
    assert scaler_of(PaperCluster())[0].plan(ScaleRequest(nodes=4)).note == ""


def test_a_plan_that_cannot_be_balanced_is_relaxed_unless_the_request_says_no() -> None:
    class Skewed(PaperCluster):
        def counters(self) -> dict[int, TaskCounters]:
            return {task: TaskCounters(1, 50.0 if task == 5 else 1.0, 100) for task in range(TASKS)}

    scaler, _ = scaler_of(Skewed())
    made = scaler.plan(ScaleRequest(nodes=4))
    assert made.relaxed
    assert "cap relaxed from" in made.reason
    with pytest.raises(Infeasible):
        scaler.plan(ScaleRequest(nodes=4, relax=False))


def test_a_restart_that_finds_less_room_than_before_goes_back_to_the_old_assignment() -> None:
    cluster = PaperCluster()
    scaler, journal = scaler_of(cluster)
    before = cluster.current
    add_nodes = cluster.add_nodes

    def add_and_take_the_room(nodes: Sequence[str]) -> None:
        add_nodes(nodes)
        cluster.room_for = 2  # somebody else took it while no node ran

    cluster.add_nodes = add_and_take_the_room  # type: ignore[method-assign]
    with pytest.raises(MigrationFailed, match="nodes"):
        scaler.scale(ScaleRequest(nodes=3, mode="restart")).wait(10)
    assert cluster.current is before
    assert cluster.nodes == set(before.nodes)
    assert [record.get("outcome") for record in journal.read()] == [None, "failed"]


def paused_restart() -> tuple[PaperCluster, Migration]:
    """One that was paused while its joining node started."""
    cluster = PaperCluster()
    scaler, _ = scaler_of(cluster)
    paused, starting = threading.Event(), cluster.add_nodes
    cluster.add_nodes = lambda nodes: (paused.wait(10), starting(nodes))[1]  # type: ignore[method-assign]
    migration = scaler.scale(ScaleRequest(nodes=3, mode="restart"))
    migration.pause()
    paused.set()
    while migration.phase != "paused":
        assert not migration.wait(0.01)
    return cluster, migration


def test_a_restart_that_is_cancelled_before_it_begins_stops_nothing() -> None:
    cluster, migration = paused_restart()
    assert not migration.wait(0.3)
    migration.cancel()
    assert migration.wait(10)
    assert cluster.stops == 0
    assert cluster.nodes == set(cluster.current.owners) == {"node-1", "node-2"}


def test_a_restart_that_was_paused_begins_when_it_is_resumed() -> None:
    cluster, migration = paused_restart()
    migration.resume()
    assert migration.wait(10)
    assert cluster.nodes == {"node-1", "node-2", "node-3"}


def test_how_states_go_is_told_to_the_cluster_and_written_down() -> None:
    cluster = PaperCluster()
    scaler, journal = scaler_of(cluster)
    assert scaler.scale(ScaleRequest(nodes=3, transfer="direct")).wait(10)
    assert scaler.scale(ScaleRequest(nodes=4)).wait(10)
    assert cluster.transfers == ["direct", "store"]
    ended = [record for record in journal.read() if record["kind"] == "ended"]
    assert [(record["transfer"], record["direct_bytes"] > 0) for record in ended] == [
        ("direct", True),
        ("store", False),
    ]


def test_a_second_request_is_refused_or_waits_as_asked() -> None:
    cluster = PaperCluster()
    scaler, _ = scaler_of(cluster)
    cluster.go.clear()
    first = scaler.scale(ScaleRequest(nodes=3))
    with pytest.raises(MigrationInProgress):
        scaler.scale(ScaleRequest(nodes=4))
    threading.Timer(0.05, cluster.go.set).start()
    second = scaler.scale(ScaleRequest(nodes=4), queue=True)
    assert first.is_over or first.wait(10)
    assert second.wait(10)
    assert len(cluster.current.nodes) == 4


def paused_migration() -> tuple[PaperCluster, Migration]:
    """One that was paused before its first move."""
    cluster = PaperCluster()
    scaler, _ = scaler_of(cluster)
    cluster.go.clear()
    migration = scaler.scale(ScaleRequest(nodes=4))
    migration.pause()
    cluster.go.set()
    while migration.phase != "paused":
        assert not migration.wait(0.01)
    return cluster, migration


def test_a_migration_that_was_paused_goes_on_when_it_is_resumed_and_not_before() -> None:
    _, migration = paused_migration()
    assert not migration.wait(0.3)
    assert migration.progress().tasks_done == 0
    migration.resume()
    assert migration.wait(10)
    assert migration.progress().tasks_done == len(migration.plan.moves)


def test_a_pause_that_comes_while_a_migration_is_about_to_go_on_counts() -> None:
    cluster, migration = paused_migration()
    cluster.go.clear()
    migration.resume()
    assert cluster.waiting  # the next mini-migration is about to start
    migration.pause()
    cluster.go.set()
    assert not migration.wait(0.3)
    assert migration.progress().tasks_done == 0
    migration.resume()
    assert migration.wait(10)


class OvertakenCluster(PaperCluster):
    """A request about the migration arrives before the begin of it does; nothing is carried out."""

    def begin(self, request: MigrationRequested | RekeyRequested) -> None:
        getattr(self.migrating, self.overtaking)()
        PaperNodes.begin(self, request)

    migrating: TaskMigration
    overtaking: str


@pytest.mark.parametrize("overtaking", ["pause", "cancel", "resume"])
def test_a_request_that_overtakes_the_begin_of_its_migration_is_not_lost(overtaking: str) -> None:
    cluster = OvertakenCluster()
    made = ScaleRequest(nodes=4).plan(cluster.current, Workload.uniform(TASKS))
    migration = cluster.migrating = TaskMigration(made, [made.moves], cluster)
    cluster.overtaking = overtaking
    if overtaking == "resume":
        migration.pause()
    migration.begin()
    view = migration.view()
    assert (view.is_paused, view.is_cancelled) == (overtaking == "pause", overtaking == "cancel")


class RecordingCluster(PaperCluster):
    """Remembers what moves of keys were requested; carries nothing out."""

    def begin(self, request: MigrationRequested | RekeyRequested) -> None:
        assert isinstance(request, RekeyRequested)
        self.requested = request
        PaperNodes.begin(self, request)

    requested: RekeyRequested


@pytest.mark.parametrize("before", ["nothing", "pause", "cancel"])
def test_moves_of_keys_begin_paused_or_not_at_all_if_that_was_requested_before(before: str) -> None:
    cluster = RecordingCluster()
    nothing = plan_keys(KeyLoads([1], [0], [0], [1.0]), cluster.current.nodes, relax=True)
    portions = [KeyPortion(KeyTargets.from_mapping(0, {hashed: 3}), 100.0) for hashed in (17, 18)]
    migration = KeyMigration(nothing, portions, cluster)
    if before != "nothing":
        getattr(migration, before)()
    assert (migration.view().keys, migration.view().size) == (2, 200.0)
    migration.begin()
    requested, view = cluster.requested, migration.view()
    assert requested.paused == view.is_paused == (before == "pause")
    assert requested.portions == (() if before == "cancel" else tuple(portion.targets for portion in portions))
    assert requested.sizes == (() if before == "cancel" else (100.0, 100.0))
    assert view.is_over == (before == "cancel")


def test_requests_that_cannot_be_right_are_refused_with_a_reason() -> None:
    current, workload = Assignment.even(tasks=4, nodes=2), Workload([1.0] * 4, [1.0] * 4)
    wrong: list[dict[str, Any]] = [
        {"nodes": 0},
        {"add": -1},
        {"nodes": 3, "add": 1},
        {"mode": "fast"},
        {"transfer": "by post"},
        {"tasks_per_node": 0},
    ]
    for how in wrong:
        with pytest.raises(InvalidRequest):
            ScaleRequest(**how)
    impossible = [ScaleRequest(nodes=5), ScaleRequest(remove=("node-7",)), ScaleRequest(remove=("node-1", "node-2"))]
    for request in impossible:
        with pytest.raises(InvalidRequest):
            request.plan(current, workload)


@given(records=st.integers(0, 12), limit=st.integers(1, 5))
def test_pages_of_a_journal_have_every_record_once_newest_first(records: int, limit: int) -> None:
    store = storage.open("memory:")
    journal = JobJournal(store, "job")
    for place in range(records):
        journal.append(MigrationEnded(outcome="done", nodes_before=1, nodes_after=place))
    seen, before = list[dict[str, Any]](), None
    while True:
        page = journal.page(limit, before)
        assert page.total == records
        assert len(page.records) <= limit
        seen += page.records
        before = page.before
        if before is None:
            break
    assert [(record["number"], record["nodes_after"]) for record in seen] == [(n, n - 1) for n in range(records, 0, -1)]


@given(st.lists(st.lists(st.floats(10, 100), min_size=1, max_size=5), min_size=1, max_size=5))
def test_work_is_what_was_spent_also_when_a_task_moves_and_its_counter_begins_anew(stays: list[list[float]]) -> None:
    monitor, now, total = Monitor(1, window_seconds=1_000.0), 0.0, 0.0
    for stay in stays:
        counter = 0.0
        monitor.observe({0: TaskCounters(0, counter, 7)}, now)  # the task has just come to a node
        for seconds in stay:
            now, counter, total = now + 1.0, counter + seconds, total + seconds
            monitor.observe({0: TaskCounters(1, counter, 7)}, now)
    assert monitor.workload().work[0] == pytest.approx(total)
    assert monitor.workload().state.tolist() == [7.0]


def test_work_before_the_window_does_not_count() -> None:
    monitor = Monitor(2, window_seconds=10.0)
    monitor.observe({0: TaskCounters(1, 5.0, 1), 1: TaskCounters(1, 1.0, 1)}, now=0.0)
    monitor.observe({0: TaskCounters(1, 5.5, 1), 1: TaskCounters(1, 4.0, 1)}, now=20.0)
    assert monitor.workload().work.tolist() == [0.5, 3.0]


def test_two_controllers_never_overwrite_each_others_records() -> None:
    store = storage.open("memory:")
    first, second = JobJournal(store, "job"), JobJournal(store, "job")
    turns = [first, second, first, second]
    records = [MigrationEnded(outcome="done", nodes_before=1, nodes_after=number) for number in range(len(turns))]
    numbers = [journal.append(record) for journal, record in zip(turns, records, strict=True)]
    assert numbers == [1, 2, 3, 4]
    assert [MigrationEnded.from_json(record) for record in first.read()] == records


def test_a_paused_migration_has_no_time_left_and_its_pause_does_not_slow_the_estimate() -> None:
    cluster = PaperCluster()
    made = ScaleRequest(nodes=4).plan(cluster.current, Workload.uniform(TASKS))
    migration = TaskMigration(made, [[move] for move in made.moves], cluster)
    cluster.add_nodes(made.joining)
    migration.phase = "moving"
    cluster.go.clear()
    beginning = threading.Thread(target=migration.begin)
    beginning.start()
    while not migration.progress().tasks_done:
        cluster.carry_out(1)
    migration.pause()
    cluster.go.set()
    beginning.join(10)
    assert migration.progress().tasks_done == 1
    before = migration.progress().seconds_left
    migration.phase = "paused"
    assert migration.progress().seconds_left is None
    threading.Event().wait(0.5)
    assert migration.progress().seconds_left is None
    migration.phase = "moving"
    after = migration.progress().seconds_left
    assert before is not None
    assert after is not None
    assert after - before < 0.5
