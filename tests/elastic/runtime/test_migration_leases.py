"""What a migration pins in the store: the states of the mini-migration under way, and nothing while it is paused."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from elastic.routing import IntervalRouting
from elastic.runtime.controller.moving import Moving
from elastic.runtime.protocol import Coordinator, Installed, Joined, Released, commands, events
from migration import Assignment, Workload, moves_between
from migration.live import MigrationRun
from storage.state import Manifest, StateRef, Unit
from tests.elastic.runtime.local_job import JOB, LocalJob, start_local_job

LEASES = [f"00000000000{number}-000000001-ab" for number in range(1, 4)]


class Cluster:
    """Two nodes; task 1 goes from the first to the second and back, in two mini-migrations."""

    def __init__(self) -> None:
        current = Assignment.even(tasks=4, nodes=2)
        manifest = Manifest.first([Unit.of_task(task) for task in range(4)])
        self.coordinator = Coordinator(manifest, IntervalRouting(current), -1, [False], current.nodes)
        self.moving = Moving(self.coordinator)
        for node, incarnation in self.coordinator.roster.wanted().items():
            self.moving.handle(Joined(node, incarnation, f"address of {node}"))
            self.moving.handle(events.EpochCommitted(self.coordinator.manifest))
        target = Assignment.of_lengths([1, 3])
        moves = moves_between(current, target, Workload([1.0] * 4, [1.0] * 4))
        back = moves_between(target, current, Workload([1.0] * 4, [1.0] * 4))
        self.run = MigrationRun(current, current, [moves, back])

    def tasks_moving(self) -> int:
        return sum(len(hand_over.tasks) for hand_over in self.run.under_way)

    def leases(self, decided: list[commands.Command]) -> list[commands.Command]:
        return [one for one in decided if isinstance(one, commands.OpenMoveLease | commands.CloseMoveLease)]

    def move(self, source: str, target: str, lease: str) -> list[commands.Command]:
        """The mini-migration under way, to its end; what was decided about leases."""
        alive = self.coordinator.roster.alive()
        ref = StateRef(f"operators/job/state/{lease}/task-1--1-x.state", Unit.of_task(1), -1, 10, lease)
        heard: list[Any] = [
            Released(source, alive[source], (ref,), stored=True),
            Installed(target, alive[target], (1,)),
        ]
        decided = [command for event in heard for command in self.moving.handle(event)]
        [commit] = [one for one in decided if isinstance(one, commands.CommitRouting)]
        assert self.leases(decided) == []  # the states may be needed until the assignment is committed
        routing = IntervalRouting(commit.assignment, 1)
        committed = events.RoutingCommitted(self.coordinator.manifest, routing, commit.assignment)
        return self.leases(self.moving.handle(committed))


def test_every_mini_migration_has_a_lease_of_its_own() -> None:
    cluster = Cluster()
    assert cluster.leases(cluster.moving.begin(cluster.run)) == [commands.OpenMoveLease()]
    assert cluster.tasks_moving() == 0
    assert cluster.leases(cluster.moving.handle(events.MoveLeaseOpened(LEASES[0]))) == []
    assert cluster.tasks_moving() == 1
    ended = cluster.move("node-1", "node-2", LEASES[0])
    assert ended == [commands.CloseMoveLease(LEASES[0]), commands.OpenMoveLease()]
    cluster.moving.handle(events.MoveLeaseOpened(LEASES[1]))
    assert cluster.move("node-2", "node-1", LEASES[1]) == [commands.CloseMoveLease(LEASES[1])]
    assert cluster.run.is_over


def test_a_paused_migration_holds_no_lease_and_opens_the_next_one_when_it_goes_on() -> None:
    cluster = Cluster()
    cluster.moving.begin(cluster.run)
    cluster.moving.handle(events.MoveLeaseOpened(LEASES[0]))
    cluster.run.pause()
    assert cluster.move("node-1", "node-2", LEASES[0]) == [commands.CloseMoveLease(LEASES[0])]
    assert cluster.moving.go_on() == []
    cluster.run.unpause()
    assert cluster.moving.go_on() == [commands.OpenMoveLease()]
    assert cluster.moving.go_on() == []  # it is being opened


@pytest.mark.parametrize("interrupt", ["pause", "cancel"])
def test_a_lease_that_is_opened_too_late_is_closed_unused(interrupt: str) -> None:
    cluster = Cluster()
    cluster.moving.begin(cluster.run)
    getattr(cluster.run, interrupt)()
    decided = cluster.moving.handle(events.MoveLeaseOpened(LEASES[0]))
    assert cluster.leases(decided) == [commands.CloseMoveLease(LEASES[0])]
    assert cluster.run.is_between


def test_a_migration_that_is_given_up_gives_its_lease_back() -> None:
    cluster = Cluster()
    cluster.moving.begin(cluster.run)
    cluster.moving.handle(events.MoveLeaseOpened(LEASES[0]))
    assert cluster.leases(cluster.moving.stop_nodes()) == [commands.CloseMoveLease(LEASES[0])]


@pytest.fixture
def local() -> Iterator[LocalJob]:
    running = start_local_job(nodes=2, tasks=8)
    yield running
    running.close()


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "timed out"
        time.sleep(0.01)


def objects(local: LocalJob) -> Counter[str]:
    root = f"operators/{JOB}/"
    kinds = Counter(entry.key.removeprefix(root).partition("/")[0] for entry in local.store.list(root))
    return Counter({kind: kinds[kind] for kind in ("log", "state", "manifest", "leases")})


def take_snapshots(local: LocalJob, count: int) -> None:
    for _ in range(count):
        local.send(*range(16))
        local.job.process_all_available()
        local.job.snapshot()


def test_a_paused_migration_pins_no_log_state_or_manifest(local: LocalJob) -> None:
    take_snapshots(local, 5)
    before = objects(local)
    migration = local.job.scale(4, tasks_per_node=1)
    migration.pause()
    until(lambda: migration.phase == "paused")
    assert not migration.is_over
    assert migration.progress().tasks_done < migration.progress().tasks
    take_snapshots(local, 60)
    until(lambda: objects(local)["leases"] == 0)
    take_snapshots(local, 1)
    until(lambda: sum(objects(local).values()) <= 2 * sum(before.values()))
    migration.resume()
    assert migration.wait(20)
    until(lambda: objects(local)["leases"] == 0)
    assert local.job.state(3) == 66
