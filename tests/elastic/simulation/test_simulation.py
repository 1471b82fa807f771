"""Every record is in the results once, whatever happens: seeds of a hostile world against an undisturbed process."""

import os

from tests.elastic.simulation.campaign import run_campaign, run_seed

SEEDS = int(os.environ.get("ELASTIC_SIMULATION_SEEDS", "120"))
FIRST_SEED = int(os.environ.get("ELASTIC_SIMULATION_FIRST_SEED", "0"))


def test_results_and_states_are_those_of_one_undisturbed_process() -> None:
    failures = run_campaign(FIRST_SEED, SEEDS, os.cpu_count() or 1)
    assert not failures, f"{len(failures)} processes met a seed that fails; the last one is above"


def test_a_seed_tells_the_same_story_again() -> None:
    for seed in (4, 17):
        first, again = (run_seed(seed)[0].tell_story(1_000_000) for _ in range(2))
        assert first == again
