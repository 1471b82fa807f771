"""Protected keys in a hostile world: every life of the driver protects other keys, and every record counts once."""

import os
from collections import Counter
from dataclasses import replace
from typing import Any

from elastic.routing import TableGrouping, hash_key
from tests.elastic.simulation.faults import STANDBYS, Faults
from tests.elastic.simulation.operators import PIPELINES
from tests.elastic.simulation.oracle import batches_of, pipeline_of
from tests.elastic.simulation.world import World

SEEDS = int(os.environ.get("ELASTIC_PROTECTED_SEEDS", "8"))
FIRST_SEED = int(os.environ.get("ELASTIC_PROTECTED_FIRST_SEED", "0"))
KEYS = 40  # some of those that come
LIVES = {"kill_driver": 3, "replace_driver": 1, "stop_driver": 2}
WORLDS = [
    Faults(disturbances={**STANDBYS, **LIVES}),
    Faults(disturbances={**STANDBYS, **LIVES, "migrate": 6, "control_migration": 2}),
]
NAMES = ("a table of keys", "processing time", "split keys held for a while")


class ProtectedWorld(World):
    """Each life of the driver protects keys of all tables by chance, some of them those of the life before."""

    def __init__(self, seed: int, name: str, faults: Faults) -> None:
        super().__init__(seed, pipeline_of(PIPELINES[name]), batches_of(seed), faults)
        self._setting = replace(self._setting, nodes=self.chance.choice([2, 3, 4]))

    def begin_life(self) -> None:
        stages = tuple(
            replace(stage, protected=self._choose_keys() if stage.grouping == TableGrouping.kind else ())
            for stage in self._setting.pipeline.stages
        )
        self._setting = replace(self._setting, pipeline=replace(self._setting.pipeline, stages=stages))
        self.tell("protected keys", [stage.protected for stage in stages])
        super().begin_life()

    def _choose_keys(self) -> tuple[int, ...]:
        return tuple(sorted(hash_key(key) for key in range(KEYS) if self.chance.random() < 0.4))


def run(seed: int) -> ProtectedWorld:
    world = ProtectedWorld(seed, NAMES[seed % len(NAMES)], WORLDS[seed // len(NAMES) % len(WORLDS)])
    try:
        world.run()
    except Exception as error:
        raise AssertionError(f"{world.tell_story(100)}\nseed {seed} failed: {error!r}") from error
    return world


def has_settled(world: Any) -> bool:
    """Whether keys were protected, and all are where the rule of the last life wants them."""
    by_stage = world.observer.committed.groupings[-1][1].by_stage
    tables = [one for one in by_stage if isinstance(one, TableGrouping)]
    tasks = world._pipeline.tasks
    return any(one.protected for one in tables) and not any(len(one.find_displaced(tasks)) for one in tables)


def test_results_are_exact_while_lives_protect_other_keys_and_nodes_are_lost() -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        world = run(seed)
        assert not world.violations
        seen.update({"lives": world.lives, **world.count()})
        seen["settled after a change"] += world.lives > 1 and has_settled(world)
    assert seen["takeovers"] > 0  # although ordinary units have no standby
    assert seen["settled after a change"] > 0
