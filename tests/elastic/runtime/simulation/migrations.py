"""Migrations in a simulated world: begun, paused, resumed, cancelled, or with all nodes stopped, by chance."""

from elastic.routing import IntervalRouting
from elastic.runtime.protocol import events
from migration import ScatteredAssignment, Workload, moves_between
from migration.live import MigrationRun
from tests.elastic.runtime.simulation.driver import Driver
from tests.elastic.runtime.simulation.shared import Shared


class Migrations:
    """Those of one life of the driver: at most one at a time."""

    def __init__(self, shared: Shared, driver: Driver) -> None:
        self.begun = 0
        self.stopping: MigrationRun | None = None  # waits until all is saved, and begins when no node is left
        self._shared = shared
        self._driver = driver

    @property
    def is_under_way(self) -> bool:
        run = self._driver.moving.run
        return self.stopping is not None or (run is not None and not run.is_over)

    def go_on(self) -> None:
        """Begin one to a random assignment, or pause, resume, cancel or end the one that there is."""
        run = self._driver.moving.run
        if self.stopping is not None:
            self._restart(self.stopping)
        elif run is not None and not run.is_over:
            self._control(run)
        else:
            self._begin()

    def resume(self) -> None:
        if (run := self._driver.moving.run) is not None:
            run.unpause()
        self._driver.execute(self._driver.moving.go_on())

    def _begin(self) -> None:
        shared, driver = self._shared, self._driver
        routing = driver.coordinator.placement.committed
        assert isinstance(routing, IntervalRouting)
        for node in sorted(set(driver.coordinator.roster.alive()) - set(routing.assignment.owners)):
            driver.hear(events.NodeUnwanted(node))
        nodes = [f"node-{number}" for number in range(1, shared.chance.choice([2, 3, 4, 5]))]
        owners = [shared.chance.choice(nodes) for _ in range(routing.assignment.tasks)]
        target = ScatteredAssignment.of_owners(owners, nodes)
        moves = moves_between(routing.assignment, target, Workload([1.0] * len(owners), [1.0] * len(owners)))
        shared.tell("a migration begins:", moves)
        self.begun += 1
        if shared.happens(shared.faults.restart):
            self.stopping = MigrationRun(routing.assignment, target, [moves])
            return
        for node in nodes:
            driver.hear(events.NodeWanted(node))
        size = shared.chance.choice([1, 2, 8])
        minis = [moves[start : start + size] for start in range(0, len(moves), size)]
        run = MigrationRun(routing.assignment, target, minis)
        driver.execute(driver.moving.begin(run, direct=shared.happens(shared.faults.direct)))

    def _restart(self, run: MigrationRun) -> None:
        """Mostly when all is applied and saved, as a job does; the protocol must not depend on that."""
        driver = self._driver
        if not driver.is_saved and self._shared.happens(0.9):
            driver.hear(events.SnapshotDue())
            return
        self.stopping = None
        self._shared.tell("all nodes stop")
        driver.execute(driver.moving.stop_nodes())
        if self._shared.happens(0.2):
            run.pause()  # too late: the old nodes come back, and the move goes on from there
        driver.execute(driver.moving.begin(run))

    def _control(self, run: MigrationRun) -> None:
        kind = self._shared.chance.random()
        if kind < 0.1:
            run.cancel()
        elif kind < 0.1 + 0.2 * self._shared.faults.restart:
            self._shared.tell("all nodes stop, and nothing has moved")  # as if there were no room
            self._driver.execute(self._driver.moving.stop_nodes())
            self._driver.execute(self._driver.moving.start_owners())
        elif kind < 0.3:
            run.pause()
        else:
            self.resume()
