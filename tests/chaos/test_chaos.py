"""The short version of the campaign: every kind of fault once, against real processes; `make chaos` has the rest.

One scenario runs by default, the others with `make long`.
"""

import json
from functools import partial
from pathlib import Path

import pytest

from scripts.s3_server import find_minio
from tests.chaos.deaths import MOMENTS
from tests.chaos.falls import BYSTANDER, COMMITTED, INSTALLED, RELEASED, SOURCE, TARGET
from tests.chaos.run import Run
from tests.chaos.scenarios import (
    CLUSTER,
    Scenario,
    die_at_moments,
    every_moment,
    fall_at_every_step,
    kill_executors,
    play,
)

pytestmark = pytest.mark.spark
_SMALL = {"nodes": 2, "tasks": 8, "rows": 2_000, "keys": 500, "batches": 3}


@pytest.mark.long
def test_results_and_state_are_exact_though_nodes_die_at_every_moment_and_the_driver_too(tmp_path: Path) -> None:
    def faults(run: Run) -> None:
        die_at_moments(run)
        run.kill_driver(jvm_too=True)

    settings = {**_SMALL, "sink": "stream", "deaths": every_moment(first_batch=2, apart=1)}
    outcome = play(Scenario("moments", faults, settings=settings), tmp_path, seed=1)
    assert outcome.wrong == []
    assert (outcome.kills, outcome.restarts, sorted(outcome.moments)) == (len(MOMENTS), 1, sorted(MOMENTS))


@pytest.mark.long
def test_results_and_state_are_exact_though_an_executor_is_lost(tmp_path: Path) -> None:
    settings = {**_SMALL, "master": CLUSTER}
    outcome = play(Scenario("executor", partial(kill_executors, kills=1), settings=settings), tmp_path, seed=2)
    assert outcome.wrong == []
    assert outcome.executors == 1
    assert outcome.recoveries


def test_results_and_state_are_exact_though_nodes_fall_while_the_job_scales(tmp_path: Path) -> None:
    falls = [[RELEASED, SOURCE], [INSTALLED, TARGET], [COMMITTED, BYSTANDER]]
    settings = {**_SMALL, "scales": 30, "most_nodes": 4, "modes": "progressive,live", "falls": json.dumps(falls)}
    outcome = play(Scenario("falls", fall_at_every_step, settings=settings), tmp_path, seed=4)
    assert outcome.wrong == []
    assert (outcome.kills, len(outcome.falls)) == (3, 3)
    assert outcome.migrations


@pytest.mark.long
@pytest.mark.server
@pytest.mark.skipif(find_minio() is None, reason="moto forgets its objects when it stops; run scripts/minio.sh")
def test_results_and_state_are_exact_though_the_store_is_away_while_a_node_dies(tmp_path: Path) -> None:
    def faults(run: Run) -> None:
        run.kill_node()
        run.lose_store(5.0, brutally=True)
        run.wait_for_batches(1)

    outcome = play(Scenario("outage", faults, "minio", _SMALL), tmp_path, seed=3)
    assert outcome.wrong == []
    assert (outcome.kills, outcome.outages) == (1, 1)
