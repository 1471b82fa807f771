"""Every record counts once, whatever happens: seeds of a hostile world against a single undisturbed process."""

import os
from collections import Counter

import pytest

from elastic.results import Description
from tests.elastic.runtime.simulation import Faults, World
from tests.elastic.runtime.simulation.operators import PIPELINES
from tests.elastic.runtime.simulation.oracle import Oracle, batches_of, lines_of, pipeline_of, text_of

SEEDS = int(os.environ.get("ELASTIC_SIMULATION_SEEDS", "120"))
FIRST_SEED = int(os.environ.get("ELASTIC_SIMULATION_FIRST_SEED", "0"))

WORLDS = {
    "crashes": Faults(),
    "crashes and migrations": Faults(migration=0.05),
    # A driver that dies ends every migration, and with it what could go wrong there: so it seldom does.
    "crashes and direct migrations": Faults(migration=0.08, direct=0.9, node_crash=0.02, controller_crash=0.0005),
    "crashes, migrations and restarts": Faults(migration=0.08, direct=0.3, restart=0.5),
}


def published(world: World, pipeline: Description) -> Counter[str]:
    found: Counter[str] = Counter()
    for stage in pipeline.stages:
        for batch in range(len(world.committed.sources)):
            rows = world.results.read(batch, stage.name)
            found.update(lines_of(stage.name, batch, rows.drop_columns(["_batch", "_task"])))
    return found


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("faults", WORLDS.values(), ids=WORLDS.keys())
def test_results_and_states_are_those_of_one_undisturbed_process(name: str, faults: Faults) -> None:
    pipeline = pipeline_of(PIPELINES[name])
    for seed in range(FIRST_SEED, FIRST_SEED + max(1, SEEDS // len(PIPELINES) // len(WORLDS))):
        batches = batches_of(seed)
        world = World(seed, pipeline, batches, nodes=1 + seed % 3, faults=faults)
        try:
            world.run()
            oracle = Oracle(pipeline, world.committed)
            oracle.take(batches)
            assert published(world, pipeline) == oracle.results
            assert {slot: text_of(state) for slot, state in world.final_states().items()} == oracle.states()
        except Exception:
            print(f"seed {seed} of {name!r}, {world.crashes} crashes; its story:")
            print("\n".join(" ".join(map(str, words))[:400] for words in world.shared.story[-200:]))
            raise
