"""What happens to a simulated job from outside: processes die or are cut off, users scale and stop it."""

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elastic.control.request import MODES, TRANSFERS
from elastic.core import events
from elastic.errors import ElasticError
from elastic.node.process import NodeProcess
from elastic.routing import SPLITS, KeyTargets, hash_key
from migration.errors import MigrationError
from storage.errors import StorageError
from tests.elastic.simulation.life import Life
from tests.elastic.simulation.oracle import TASKS
from tests.elastic.simulation.scheduler import Process

if TYPE_CHECKING:
    from tests.elastic.simulation.world import World

_CUT_SECONDS = (1.0, 4.0, 10.0, 70.0)
_NOTICE_SECONDS = (1.0, 30.0, None)  # until Spark says that a machine is gone; it may never do so
_OUTAGE_SECONDS = (0.5, 3.0, 15.0)
_CUT_FROM_STORE_SECONDS = (2.0, 15.0, 40.0)
_KEYS = 40  # some of those that come
_USER_SECONDS = 5.0  # after which a user's call has taken effect: a pause that follows a resume would stay
_MEAN_SECONDS = 1.2  # between two disturbances
_AMBUSH_SECONDS = 2.0
_AMBUSH_POLL_SECONDS = 0.004
_CONTROLS = (events.PauseRequested, events.ResumeRequested, events.CancelRequested)
_SWITCHES = (0, 0, 3, 10, 40)  # after the clock has moved, so that things happen in the middle of others


def has_release(_: Life, node: NodeProcess) -> bool:
    """Units stop, or their states are on their way."""
    return bool(node._releases._releases)


def has_offer(_: Life, node: NodeProcess) -> bool:
    """Other nodes may fetch states that are not in the store yet."""
    return any(not offer.stored for offer in node._releases._offers._offers.values())


def has_output(_: Life, node: NodeProcess) -> bool:
    """The output of a step is not in the store."""
    return bool(node._writer._pending)


def owes_output(life: Life, node: NodeProcess) -> bool:
    """Units move, and the node has not reported all that they put out."""
    assert life.job is not None
    return life.job._driver.view.is_moving and has_output(life, node)


def is_loading(_: Life, node: NodeProcess) -> bool:
    return node._host.loading > 0


def has_answered_snapshot(life: Life, node: NodeProcess) -> bool:
    """Its states are saved, and wait for those of other nodes."""
    assert life.job is not None
    snapshot = life.job._driver._loop._coordinator.snapshots._snapshot
    return snapshot is not None and not snapshot.committing and node._context.node in snapshot.reported_by.values()


def is_saved_and_moves(life: Life, node: NodeProcess) -> bool:
    """A snapshot is being committed, and units leave the node."""
    assert life.job is not None
    return life.job._driver._loop._coordinator.snapshots.is_committing and has_release(life, node)


def is_awaited_by_rekeying(life: Life, node: NodeProcess) -> bool:
    """Keys move, and the node has not taken the orders or the parts."""
    rekeying = None if life.job is None else life.job._driver.view.rekeying
    return rekeying is not None and node._context.node in rekeying.awaited


def is_behind_as_standby(_: Life, node: NodeProcess) -> bool:
    """Published batches wait for its standbys."""
    return node._host.standby_lag > 0


def takes_over(life: Life, node: NodeProcess) -> bool:
    """It owns units whose owner before is lost, and that is not committed."""
    assert life.job is not None
    placement = life.job._driver._loop._coordinator.placement
    committed = placement.committed.assignment.owners
    return any(
        owner == node._context.node != before
        for before, owner in zip(committed, placement.settled_owners(), strict=True)
    )


def has_parts(life: Life, node: NodeProcess) -> bool:
    """Keys have left units of the node, and their states are not in the store."""
    return is_awaited_by_rekeying(life, node) and any(result.parts for result in node._writer._pending)


_RISKS = (
    has_release,
    has_offer,
    has_output,
    owes_output,
    is_loading,
    has_answered_snapshot,
    is_saved_and_moves,
    is_awaited_by_rekeying,
    has_parts,
    is_behind_as_standby,
    takes_over,
)
_MOVING = (has_release, has_offer, owes_output, is_loading, is_saved_and_moves)
_SAVING = (has_answered_snapshot, is_saved_and_moves)
_REKEYING = (is_awaited_by_rekeying, has_parts)


class Chaos:
    """Disturbs a world some times, then lets it come to rest."""

    def __init__(self, world: "World", chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self.struck: set[str] = set()  # incarnations that were killed, cut off or declared lost
        self._world = world
        self._chance = chance
        self._scheduler = world.scheduler
        self._targets: list[str] = []  # incarnations that the next disturbance of a node chooses from

    def run(self, times: int) -> None:
        weights = self._world.faults.disturbances
        kinds = list(weights)
        for _ in range(times):
            self._scheduler.sleep(self._chance.expovariate(1 / _MEAN_SECONDS))
            for _ in range(self._chance.choice(_SWITCHES)):
                self._scheduler.pause()
            [kind] = self._chance.choices(kinds, list(weights.values()))
            if getattr(self, f"_{kind}")(self._world.life) is not False:
                self.done[kind] += 1
        self._scheduler.sleep(_USER_SECONDS)
        self._resume(self._world.life)

    # Nodes.

    def _kill_node(self, life: Life) -> bool:
        return self._to_a_node(life, "is killed", lambda _, process: self._scheduler.kill(process))

    def _kill_two_nodes(self, life: Life) -> bool:
        """At the same moment, or the second while another node takes over what the first had."""
        if not self._kill_node(life):
            return False
        self._scheduler.sleep(self._chance.choice([0.0, 0.01, 0.1, 1.0]))
        return self._kill_node(self._world.life)

    def _kill_owner_and_standby(self, life: Life) -> bool:
        """Kill a node, and then, at once or a moment later, one that follows its units."""
        if not life.is_running or life.job is None or life.launcher is None:
            return False
        placement = life.job._driver._loop._coordinator.placement
        followed = {node: set(placement.followed_by(node)) for node in placement.following()}
        pairs = [
            (owner, node)
            for owner in placement.owners()
            for node in followed
            if followed[node] & set(placement.units_on(owner))
        ]
        if not pairs:
            return False
        for name in self._chance.choice(pairs):
            self._targets = [one for one in life.launcher.living() if life.launcher.incarnations[one].node == name]
            if self._targets:
                self._kill_node(life)
            self._scheduler.sleep(self._chance.choice([0.0, 0.0, 0.02, 0.2, 1.0]))
        return True

    def _vanish_node(self, life: Life) -> bool:
        """Its machine is gone: calls to it hang, and Spark notices late."""

        def vanish(_: str, process: Process) -> None:
            self._world.network.cut_off.add(process)
            self._scheduler.kill(process, silently=True)
            self._later(_NOTICE_SECONDS, lambda: self._scheduler.announce(process))

        return self._to_a_node(life, "vanishes", vanish)

    def _cut_off_node(self, life: Life) -> bool:
        """It goes on, and hears and says nothing for a while."""

        def cut(_: str, process: Process) -> None:
            self._world.network.cut_off.add(process)
            self._later(_CUT_SECONDS, lambda: self._world.network.cut_off.discard(process))

        return self._to_a_node(life, "is cut off", cut)

    def _cut_node_from_store(self, life: Life) -> bool:
        """The store is there for all others."""

        def cut(_: str, process: Process) -> None:
            seconds = self._chance.choice(_CUT_FROM_STORE_SECONDS)
            self._world.store.cut_off_until[process] = self._scheduler.now + seconds

        return self._to_a_node(life, "cannot reach the store", cut)

    def _declare_node_lost(self, life: Life) -> bool:
        """Spark says that it is gone, while it goes on."""

        def declare(incarnation: str, _: Process) -> None:
            assert life.launcher is not None
            ended, node = life.launcher.callbacks[incarnation], life.launcher.incarnations[incarnation].node
            life.spawn(lambda: ended(node, incarnation, "its executor is lost", False), "executor lost")

        return self._to_a_node(life, "is declared lost", declare)

    def _ambush_node(self, life: Life) -> bool:
        """Wait until a node does something that no other can do in its place, and disturb it then."""
        is_at_risk = self._chance.choice(_RISKS)
        if is_at_risk in _MOVING:
            self._migrate(life)
        if is_at_risk in _SAVING:
            self._snapshot(life)
        if is_at_risk in _REKEYING:
            self._rekey(life)
        if is_at_risk is takes_over:
            self._kill_node(life)
        disturb = self._chance.choice(
            [
                self._kill_node,
                self._kill_node,
                self._cut_off_node,
                self._declare_node_lost,
                self._cut_node_from_store,
            ]
        )
        deadline = self._scheduler.now + _AMBUSH_SECONDS
        while self._scheduler.now < deadline and self._world.life is life:
            living = {} if life.launcher is None or not life.is_running else life.launcher.living_nodes()
            self._targets = [name for name, node in living.items() if is_at_risk(life, node)]
            if self._targets:
                self._world.tell("ambush:", is_at_risk.__name__)
                return disturb(life)
            self._scheduler.sleep(_AMBUSH_POLL_SECONDS)
        return False

    def _to_a_node(self, life: Life, what: str, do: Callable[[str, Process], None]) -> bool:
        launcher = life.launcher
        living = [] if launcher is None else launcher.living()
        if launcher is None or not living:
            return False
        incarnation = self._chance.choice([name for name in self._targets if name in living] or living)
        self._targets = []
        self._world.tell(incarnation, what)
        self.struck.add(launcher.current_name(incarnation))
        do(incarnation, launcher.processes[incarnation])
        return True

    # The driver.

    def _kill_driver(self, life: Life) -> None:
        """Its nodes die with it, or go on until they miss it."""
        self._world.tell(life.process, "is killed")
        self._scheduler.kill(life.process)
        launcher = life.launcher
        if launcher is not None:
            for incarnation in launcher.living():
                if self._chance.random() < 0.7:
                    self._scheduler.kill(launcher.processes[incarnation])
        self._world.begin_life()

    def _replace_driver(self, life: Life) -> bool:
        """Another driver starts while the one before goes on: it must find out that it is not the owner any more."""
        if not life.is_running:
            return False
        self._world.tell(life.process, "is taken for dead")
        self._world.begin_life()
        return True

    def _stop_driver(self, life: Life) -> bool:
        """Gracefully, and another one starts."""
        if not life.is_running or life.job is None:
            return False
        self._world.tell(life.process, "is stopped")
        life.is_stopping = True
        job, drain = life.job, self._chance.random() < 0.8
        life.spawn(lambda: job.stop(drain=drain), "stop").join()
        if self._world.life is life:  # else it failed meanwhile, and the world has started another one
            self._world.begin_life()
        return True

    # Its user.

    def _snapshot(self, life: Life) -> bool:
        return self._call(life, "snapshot", lambda: life.job.snapshot(20.0))  # type: ignore[union-attr]

    def _look_up(self, life: Life) -> bool:
        return self._call(life, "look up", lambda: life.job.state(self._chance.randrange(20)))  # type: ignore[union-attr]

    def _store_outage(self, _: Life) -> None:
        seconds = self._chance.choice(_OUTAGE_SECONDS)
        self._world.tell("the store is away for", seconds)
        self._world.store.away_until = self._scheduler.now + seconds

    def _migrate(self, life: Life) -> bool:
        request: dict[str, Any] = {
            "nodes": self._chance.randrange(1, 5),
            "mode": self._chance.choice([*MODES, "progressive", "live", "warm"]),
            "transfer": self._chance.choice(list(TRANSFERS)),
            "tasks_per_node": self._chance.choice([1, 2, TASKS]),
            "tau": self._chance.choice([0.0, 0.2, 1.0]),
        }
        return self._call(life, f"scale {request}", lambda: life.job.scale(**request))  # type: ignore[union-attr]

    def _rekey(self, life: Life) -> bool:
        """Move some keys of a stage that has a table, in some portions."""
        if not life.is_running or life.job is None:
            return False
        driver = life.job._driver
        tables = [number for number, one in enumerate(driver.view.routing.groupings.by_stage) if one.kind == "table"]
        if not tables:
            return False
        stage = self._chance.choice(tables)
        portions = tuple(self._some_targets(stage) for _ in range(self._chance.choice([1, 1, 2, 4])))
        request = events.RekeyRequested(f"rekeying-{self.done['rekey']}", portions, (1.0,) * len(portions))
        return self._call(life, f"rekey {portions}", lambda: driver.post(request))

    def _split(self, life: Life) -> bool:
        """Split other keys of a partial stage."""
        if life.job is None or not any(stage.is_partial for stage in life.job.pipeline.stages):
            return False
        job, splits = life.job, self._chance.choice(list(SPLITS))
        return self._call(life, f"split {splits}", lambda: job.split(splits))

    def _some_targets(self, stage: int) -> KeyTargets:
        keys = self._chance.sample(range(_KEYS), self._chance.choice([0, 1, 5, _KEYS]))
        return KeyTargets.from_mapping(
            stage, {hash_key(key): self._chance.choice([None, *range(TASKS)]) for key in keys}
        )

    def _control_rekeying(self, life: Life) -> bool:
        if not life.is_running or life.job is None or (rekeying := life.job._driver.view.rekeying) is None:
            return False
        driver, what = life.job._driver, self._chance.choice(_CONTROLS)
        return self._call(life, what.__name__, lambda: driver.post(what(rekeying.id)))

    def _control_migration(self, life: Life) -> bool:
        migration = None if life.job is None else life.job.migration
        if migration is None or migration.is_over:
            return False
        what = self._chance.choice(["pause", "resume", "cancel"])
        return self._call(life, what, getattr(migration, what))

    def _resume(self, life: Life) -> None:
        migration = None if life.job is None else life.job.migration
        if migration is not None:
            self._call(life, "resume", migration.resume)
        if life.job is not None and (rekeying := life.job._driver.view.rekeying) is not None:
            driver = life.job._driver
            self._call(life, "resume", lambda: driver.post(events.ResumeRequested(rekeying.id)))

    def _call(self, life: Life, what: str, call: Callable[[], object]) -> bool:
        """In a thread of the driver; what a user may be told in such a world is no error."""
        if not life.is_running:
            return False

        def guarded() -> None:
            try:
                call()
            except (ElasticError, MigrationError, StorageError, TimeoutError) as error:
                self._world.tell("user is told:", repr(error))

        self._world.tell("user:", what)
        life.spawn(guarded, "user")
        return True

    def _later(self, seconds: tuple[float | None, ...], do: Callable[[], object]) -> None:
        after = self._chance.choice(seconds)
        if after is None:
            return

        def wait() -> None:
            self._scheduler.sleep(after)
            do()

        self._scheduler.spawn(wait, "later", self._scheduler.world)
