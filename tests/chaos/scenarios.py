"""What happens to a job, by name. Every choice comes from the run's seed; how things overlap does not."""

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.s3_server import S3Server, minio_server
from tests.chaos.deaths import MOMENTS, REPLAYING, Deaths
from tests.chaos.life import ROOT, DriverEnded
from tests.chaos.run import Outcome, Run, running
from tests.chaos.settings import COUNTING, DriverSettings
from tests.chaos.small_disk import SMALL_DISK, small_disk

LOCAL = "local[12]"
CLUSTER = "local-cluster[2,4,1024]"
_BUCKET = "chaos"
_AFTER_PROGRESS = 0.7  # how often the next node is killed only after a batch
_AGAIN = 0.25  # probability that a restarted node is killed at once, while it loads or replays


def kill_nodes(run: Run, kills: int) -> None:
    """At random moments: idle, staging, applying, saving; others may be on their way back, or the same one is."""
    again: str | None = None
    for _ in range(kills):
        if again is None and run.random.random() < _AFTER_PROGRESS:
            run.wait_for_batches(1)
        if again is None:
            run.sleep(2.0)
        killed = run.kill_node(again)
        again = killed if run.random.random() < _AGAIN else None
    run.wait_for_batches(1)


def kill_drivers(run: Run, kills: int, most_seconds: float = 3.0) -> None:
    """With its JVM, and alone in turns; the next life begins while the processes of the last one still end."""
    for number in range(kills):
        run.sleep(most_seconds)
        run.kill_driver(jvm_too=number % 2 == 0)


def kill_executors(run: Run, kills: int, most_seconds: float = 3.0) -> None:
    for _ in range(kills):
        run.sleep(most_seconds)
        run.kill_executor()
        run.wait_for_batches(2)


def lose_store(run: Run, seconds: float, outages: int = 1) -> None:
    """Gracefully and by kill -9 in turns."""
    for number in range(outages):
        run.sleep(3.0)
        run.lose_store(seconds, brutally=number % 2 == 1)
        run.wait_for_batches(2)


def die_at_moments(run: Run) -> None:
    run.wait_for_deaths(Deaths(run.settings.folder, run.settings.planned_deaths))


def scale(run: Run) -> None:
    """Out, in, this very node away, rebalanced, in every mode, back to back."""
    run.wait_for_scales(run.settings.scales)


def scale_and_kill(run: Run, kills: int) -> None:
    """The same while nodes die at any moment."""
    for number in range(kills):
        run.wait_for_scales((number + 1) * run.settings.scales // (kills + 1))
        run.sleep(1.0)
        run.kill_node()
    scale(run)


def scale_through_outages(run: Run, seconds: float, outages: int = 2) -> None:
    """The same while the store is away."""
    for number in range(outages):
        run.wait_for_scales((number + 1) * run.settings.scales // (outages + 1))
        run.sleep(1.0)
        run.lose_store(seconds, brutally=number % 2 == 1)
    scale(run)


def fall_at_every_step(run: Run) -> None:
    """Source, target, bystander and driver, each at every step of a hand-over."""
    run.wait_for_falls()


def mix(run: Run, outage_seconds: float | None) -> None:
    """Everything, one fault before the last one is over."""
    kill_nodes(run, 3)
    run.kill_executor()
    kill_nodes(run, 2)
    if outage_seconds is not None:
        run.kill_node()
        run.lose_store(outage_seconds, brutally=True)
    kill_nodes(run, 2)
    run.kill_driver(jvm_too=True)
    run.kill_node()
    run.kill_executor()
    run.wait_for_batches(1)
    run.kill_driver(jvm_too=False)


def every_moment(first_batch: int, apart: int = 4) -> str:
    """A plan with each moment of the protocol, some batches apart; a replay dies where its first life did."""
    batches = {moment: first_batch + apart * number for number, moment in enumerate(MOMENTS)}
    batches[REPLAYING] = batches["applying"]
    return json.dumps(list(batches.items()))


@dataclass(frozen=True)
class Scenario:
    """Faults, and the job that they happen to."""

    name: str
    faults: Callable[[Run], None]
    store: str = "file"  # or "minio", or a small disk
    settings: Mapping[str, Any] | None = None
    seconds: float = 600.0  # at most; on two busy cores the longest took seven minutes

    @property
    def title(self) -> str:
        settings = DriverSettings("", "", **(self.settings or {}))
        where = "cluster" if settings.master == CLUSTER else "local"
        what = f"{self.name}, {where}, {self.store}, {settings.sink}"
        return what if settings.operator == COUNTING else f"{what}, {settings.operator}"


def play(scenario: Scenario, folder: Path, seed: int) -> Outcome:
    """Run a job through a scenario; what ends it early is what is wrong."""
    with _place(scenario.store, folder) as (place, server):
        settings = DriverSettings(
            str(folder), place("store"), outputs=place("outputs"), seed=seed, **(scenario.settings or {})
        )
        run = Run(settings, _environment(server), server, seed=seed, seconds=scenario.seconds)
        try:
            with running(run):
                scenario.faults(run)
                run.finish()
        except (DriverEnded, TimeoutError) as early:
            run.outcome.wrong.append(str(early))
        return run.outcome


@contextmanager
def _place(store: str, folder: Path) -> Iterator[tuple[Callable[[str], str], S3Server | None]]:
    (folder / "minio").mkdir(parents=True, exist_ok=True)
    if store == SMALL_DISK:
        with small_disk(folder / "disk") as disk:
            yield lambda name: ((disk if name == "store" else folder) / name).as_uri(), None
        return
    with minio_server(folder / "minio") if store == "minio" else nullcontext() as server:
        if server is None:
            yield lambda name: (folder / name).as_uri(), None
        else:
            server.create_bucket(_BUCKET)
            yield lambda name: server.url(_BUCKET, name), server


def _environment(server: S3Server | None) -> dict[str, str]:
    """For a driver and all that it starts, on this machine only."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "ELASTIC_SECRET": secrets.token_hex(32),
        **({} if server is None else server.environment()),
    }
