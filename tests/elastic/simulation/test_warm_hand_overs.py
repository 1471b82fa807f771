"""Crashes at every step of a warm hand-over, aimed: results and states are exact, and nothing waits for ever."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product

import pytest

from elastic.core.coordinator import Coordinator
from elastic.core.hand_over import HandOver, HandOverPhase
from elastic.core.hosted_unit import HostedUnit
from elastic.core.ids import UnitId
from elastic.errors import ElasticError
from tests.elastic.simulation.chaos import Chaos
from tests.elastic.simulation.faults import Faults
from tests.elastic.simulation.life import Life
from tests.elastic.simulation.operators import PIPELINES
from tests.elastic.simulation.oracle import TASKS, batches_of, pipeline_of
from tests.elastic.simulation.world import World

FIRST_SEED = int(os.environ.get("ELASTIC_SIMULATION_FIRST_SEED", "0"))
SEEDS = int(os.environ.get("ELASTIC_HAND_OVER_SEEDS", "1"))  # for each set of victims
_PATIENCE_SECONDS = 40.0  # for a step to be reached
_POLL_SECONDS = 0.002
_SETTLE_SECONDS = 5.0

Find = Callable[[Life, Coordinator], "HandOver | None"]


def in_phase(phase: HandOverPhase, *, is_loaded: bool | None = None) -> Find:
    """Find a hand-over in that phase; with `is_loaded` one whose target has the states of its units, or lacks some."""

    def find(life: Life, coordinator: Coordinator) -> HandOver | None:
        migration = coordinator.hand_overs._migration
        for one in migration.in_flight if migration is not None else ():
            hosted = _units_on(life, one.hand_over.target)
            units = coordinator.placement.units_of(one.hand_over.tasks)
            has_all = all(unit in hosted and hosted[unit].state is not None for unit in units)
            if one.phase is phase and is_loaded in (None, has_all):
                return one.hand_over
        return None

    return find


def _units_on(life: Life, node: str) -> dict[UnitId, HostedUnit]:
    """The units of the living process of a node."""
    assert life.launcher is not None
    processes = life.launcher.living_nodes().values()
    return next((one._host._units for one in processes if one._context.node == node), {})


def is_committing(_: Life, coordinator: Coordinator) -> HandOver | None:
    """Find a hand-over whose assignment is on its way into the store."""
    migration = coordinator.hand_overs._migration
    return migration.in_flight[0].hand_over if migration is not None and migration.committing is not None else None


def is_dropping(life: Life, coordinator: Coordinator) -> HandOver | None:
    """Find a hand-over that is committed, and whose source has a unit that it has released."""
    migration = coordinator.hand_overs._migration
    for one in migration.done if migration is not None else ():
        hosted = _units_on(life, one.source)
        if any(unit in hosted and hosted[unit].is_released for unit in coordinator.placement.units_of(one.tasks)):
            return one
    return None


STEPS: dict[str, Find] = {
    "before it follows": in_phase(HandOverPhase.FOLLOWING, is_loaded=False),
    "while it catches up": in_phase(HandOverPhase.FOLLOWING, is_loaded=True),
    "while the source stops": in_phase(HandOverPhase.RELEASING),
    "while roles are switched": in_phase(HandOverPhase.INSTALLING),
    "while it is committed": is_committing,
    "before the source drops": is_dropping,
}
VICTIMS: tuple[tuple[str, ...], ...] = (
    ("source",),
    ("target",),
    ("standby",),
    ("driver",),
    ("source", "target"),
    ("source", "standby"),
    ("source", "driver"),
    ("target", "driver"),
)
ENDS = ("killed", "vanished")


class Assassin(Chaos):
    """Requests one warm migration, and ends the processes of the victims when the hand-over is at the step."""

    def __init__(self, world: World, step: str, victims: Iterable[str], end: str) -> None:
        super().__init__(world, world.chance)
        self._find = STEPS[step]
        self._victims = tuple(victims)
        self._end = end

    def run(self, _: int) -> None:
        self._scheduler.sleep(self._chance.choice([1.0, 2.0, 4.0]))  # so that there are standbys, or are about to be
        life = self._world.life
        self._request(life)
        deadline = self._scheduler.now + _PATIENCE_SECONDS
        while self._scheduler.now < deadline and self._world.life is life:
            found = None if not life.is_running or life.job is None else self._look(life)
            if found is not None:
                self.done["struck"] += 1
                self._strike(life, found)
                break
            self._scheduler.sleep(_POLL_SECONDS)
        self._scheduler.sleep(_SETTLE_SECONDS)

    def _look(self, life: Life) -> HandOver | None:
        assert life.job is not None
        return self._find(life, life.job._driver._loop._coordinator)

    def _request(self, life: Life) -> None:
        def scale() -> None:
            assert life.job is not None
            nodes = life.job.assignment().nodes
            leaving = self._chance.choice(nodes)
            request = {"remove": [leaving]} if self._chance.random() < 0.5 else {"add": 1}
            options = {"mode": "warm", "tau": 1.0, "tasks_per_node": self._chance.choice([1, TASKS])}
            try:
                life.job.scale(**request, **options)  # type: ignore[arg-type]
            except (ElasticError, TimeoutError) as error:
                self._world.tell("user is told:", repr(error))

        while not life.is_running:
            self._scheduler.sleep(_POLL_SECONDS)
        life.spawn(scale, "user")

    def _strike(self, life: Life, hand_over: HandOver) -> None:
        assert life.job is not None
        placement = life.job._driver._loop._coordinator.placement
        units = set(placement.units_of(hand_over.tasks))
        others = [node for node in placement.following() if units & set(placement.followed_by(node))]
        others = [node for node in others if node not in (hand_over.source, hand_over.target)]
        names = {"source": hand_over.source, "target": hand_over.target, "standby": others[0] if others else None}
        for victim in self._victims:
            if victim == "driver":
                self._kill_driver(life)
                continue
            assert life.launcher is not None
            for name, process in life.launcher.living_nodes().items():
                if process._context.node == names[victim]:
                    self._targets = [name]
                    (self._kill_node if self._end == "killed" else self._vanish_node)(life)


def strike(step: str, victims: tuple[str, ...], end: str, seed: int) -> World:
    """Run a world in which the network and the store do not fail, except as the processes do."""
    pipelines = ["order in every round", "two stages", "columns", "rows shuffled by nodes", "split keys"]
    no_faults = Faults(lost=0.0, lost_answer=0.0, late=0.0, store=0.0, slow_store=0.0, standbys=(1, 1, 2))
    pipeline = pipeline_of(PIPELINES[pipelines[seed % len(pipelines)]])
    world = World(seed, pipeline, batches_of(seed), no_faults)
    world.chaos = Assassin(world, step, victims, end)
    try:
        world.run()
    except Exception:
        print(world.tell_story(150))
        print(f"seed {seed}: {step}, {victims}, {end}")
        raise
    return world


@pytest.mark.parametrize("step", STEPS)
def test_a_warm_hand_over_is_exact_whoever_dies_in_it(step: str) -> None:
    counts: Counter[str] = Counter()
    kinds = list(product(range(SEEDS), VICTIMS))
    for number, (seed, victims) in enumerate(kinds):
        end = ENDS[(seed + number + list(STEPS).index(step)) % len(ENDS)]
        counts += Counter(strike(step, victims, end, FIRST_SEED + number).count())
    assert counts["struck"] >= len(kinds) // 4, counts
