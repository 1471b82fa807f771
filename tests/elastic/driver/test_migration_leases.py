"""What a migration pins in the store: the states of the mini-migration under way, and nothing while it is paused."""

from collections import Counter
from collections.abc import Iterator

import pytest

from elastic.core import commands, events
from elastic.core.commands import Command
from tests.elastic.core.world import World, commits, leases, moves_to, request_of, scattered
from tests.elastic.driver.local_job import JOB, LocalJob, start_local_job, until

LEASES = [f"00000000000{number}-000000001-ab" for number in range(1, 4)]


class Cluster(World):
    """Two nodes; task 1 goes from the first to the second and back, in two mini-migrations."""

    def __init__(self) -> None:
        super().__init__()
        target = scattered([0, 1, 1, 1])
        minis = [moves_to(self.current, target), moves_to(target, self.current)]
        self.request = request_of(self.current, self.current, minis)

    def open_lease(self, number: int) -> list[Command]:
        return leases(self.hear(events.MigrationLeaseOpened(LEASES[number])))

    def tasks_moving(self) -> int:
        migration = self.coordinator.view().migration
        assert migration is not None
        return sum(len(hand_over.tasks) for hand_over in migration.in_flight)

    def move(self, source: str, target: str, lease: str) -> list[Command]:
        """Bring the mini-migration in flight to its end; return what is decided about leases."""
        decided = [*self.release(source, 1, lease=lease), *self.install(target, 1)]
        [commit] = commits(decided)
        assert leases(decided) == []  # the states may be needed until the assignment is committed
        return leases(self.commit(commit))


def test_every_mini_migration_has_a_lease_of_its_own() -> None:
    cluster = Cluster()
    assert leases(cluster.hear(cluster.request)) == [commands.OpenMigrationLease()]
    assert cluster.tasks_moving() == 0
    assert cluster.open_lease(0) == []
    assert cluster.tasks_moving() == 1
    ended = cluster.move("node-1", "node-2", LEASES[0])
    assert ended == [commands.CloseMigrationLease(LEASES[0]), commands.OpenMigrationLease()]
    cluster.open_lease(1)
    assert cluster.move("node-2", "node-1", LEASES[1]) == [commands.CloseMigrationLease(LEASES[1])]
    migration = cluster.coordinator.view().migration
    assert migration is not None
    assert migration.is_over


def test_a_paused_migration_holds_no_lease_and_opens_the_next_one_when_it_goes_on() -> None:
    cluster = Cluster()
    cluster.hear(cluster.request)
    cluster.open_lease(0)
    cluster.hear(events.PauseRequested("m1"))
    assert cluster.move("node-1", "node-2", LEASES[0]) == [commands.CloseMigrationLease(LEASES[0])]
    assert cluster.hear(events.ChangeNoted("m1", "still paused")) == []
    assert cluster.hear(events.ResumeRequested("m1")) == [commands.OpenMigrationLease()]
    assert cluster.hear(events.ResumeRequested("m1")) == []  # it is being opened


@pytest.mark.parametrize("interrupt", [events.PauseRequested, events.CancelRequested])
def test_a_lease_that_is_opened_too_late_is_closed_unused(interrupt: type) -> None:
    cluster = Cluster()
    cluster.hear(cluster.request)
    cluster.hear(interrupt("m1"))
    assert cluster.open_lease(0) == [commands.CloseMigrationLease(LEASES[0])]
    assert cluster.tasks_moving() == 0


def test_a_migration_that_is_given_up_gives_its_lease_back() -> None:
    cluster = Cluster()
    cluster.hear(cluster.request)
    cluster.open_lease(0)
    assert leases(cluster.hear(events.StopAllRequested())) == [commands.CloseMigrationLease(LEASES[0])]


def test_a_lease_that_is_opened_when_no_migration_wants_it_is_closed() -> None:
    assert Cluster().open_lease(0) == [commands.CloseMigrationLease(LEASES[0])]


@pytest.fixture
def local() -> Iterator[LocalJob]:
    running = start_local_job(nodes=2, tasks=8)
    yield running
    running.close()


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
