"""One run of a job through faults, over as many lives of its driver as they leave it, and the judgement at its end."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import storage
from scripts.s3_server import S3Server
from tests.chaos import api_probe, falls, processes
from tests.chaos.deaths import Deaths
from tests.chaos.life import DriverEnded, Life
from tests.chaos.oracle import content_hash
from tests.chaos.settings import OUTPUTS, STATE, DriverSettings

_LOOK_SECONDS = 0.02
_STOP_SECONDS = 80.0  # a migration settles in 10 s, batches and states in 60 s; the rest is for nodes that leave
_HEALTH_SECONDS = 45.0  # after the last fault, until the API calls the job healthy; on two busy cores
_ORPHAN_SECONDS = 90.0  # a node leaves when its controller was silent for a minute


@dataclass
class Outcome:
    """What a run went through, and what is wrong with what it left; nothing, if all is well."""

    rows: int = 0
    keys: int = 0
    hash: str = ""
    kills: int = 0
    restarts: int = 0
    executors: int = 0
    outages: int = 0
    pauses: int = 0
    progress_seconds: float = 0.0  # the longest time until two more batches were applied after a fault
    stop_seconds: float = 0.0  # that the last driver took to stop
    migrations: dict[str, int] = field(default_factory=dict)  # by their end
    falls: list[str] = field(default_factory=list)  # victims of each step of a migration
    moments: list[str] = field(default_factory=list)
    recoveries: list[tuple[float, int]] = field(default_factory=list)
    reader_restarts: int = 0
    orphans: int = 0  # processes that had to be ended, because they did not notice that their driver was gone
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Run:
    """A job under test. Use `running`; its faults may be called in any order, by one thread."""

    def __init__(
        self,
        settings: DriverSettings,
        environment: Mapping[str, str],
        server: S3Server | None = None,
        *,
        seed: int,
        seconds: float,
    ) -> None:
        self.settings = settings
        self.random = random.Random(seed)  # noqa: S311 - for a repeatable choice
        self.outcome = Outcome()
        self._environment = environment
        self._server = server
        self._began = time.monotonic()
        self._deadline = self._began + seconds
        self._lives: list[Life] = []
        self._killed: set[int] = set()
        self._left: dict[int, str] = {}
        self._risen = 0  # how often the driver fell in a migration, and was started again

    @property
    def life(self) -> Life:
        return self._lives[-1]

    def start(self) -> None:
        """A life of the driver; returns when it has taken a batch more than the one before."""
        before = self.life.published_batch if self._lives else -1
        self._begin_life()
        self._through_falls(lambda: self.wait_for_batch(before + 1))

    def wait_for_batch(self, batch: int) -> None:
        self.life.wait_for(lambda: self.life.published_batch >= batch, self._deadline)

    def wait_for_batches(self, batches: int) -> None:
        """Until that many more are applied."""
        self.wait_for_batch(self.life.published_batch + batches)

    def wait_for_deaths(self, deaths: Deaths) -> None:
        """Until all that were planned have happened."""
        planned = len(self.settings.planned_deaths)
        self.life.wait_for(lambda: len(deaths.happened()) == planned, self._deadline)
        self.outcome.moments = deaths.happened()
        self.outcome.kills += planned

    def wait_for_scales(self, scales: int) -> None:
        """Until that many migrations are over."""
        self._wait_for(lambda: self.life.scaled >= scales)

    def wait_for_falls(self) -> None:
        """Until everybody has died who was planned to in migrations; there must be enough of them for that."""
        planned = len(self.settings.planned_falls)
        enough = self.settings.scales
        self._wait_for(lambda: len(self._falls()) == planned or self.life.scaled >= enough)
        self.outcome.falls = self._falls()
        self.outcome.kills += sum(falls.DRIVER not in fall for fall in self._falls())

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        """Until it is so, and the driver lives, for it takes another batch."""

        def wait() -> None:
            self.life.wait_for(lambda: condition() or bool(self.life.status.get("wrong")), self._deadline)
            self.wait_for_batches(1)

        self._through_falls(wait)

    def _through_falls(self, wait: Callable[[], None]) -> None:
        """Wait; restart a driver that dies in a migration meanwhile."""
        while True:
            try:
                return wait()
            except DriverEnded:
                if sum(falls.DRIVER in fall for fall in self._falls()) <= self._risen:
                    raise
            self._risen += 1
            self.outcome.restarts += 1
            self._left.update(self.life.leavings)
            self._begin_life()

    def _begin_life(self) -> None:
        log = Path(self.settings.folder, f"driver-{len(self._lives)}.log")
        self._lives.append(Life(self.settings, self._environment, log))

    def _falls(self) -> list[str]:
        return falls.happened(self.settings.folder)

    def kill_node(self, name: str | None = None) -> str:
        """Kill the process of a node, any or that one, as soon as there is one; its name."""
        while True:
            alive = {n: pid for n, pid in self.life.nodes.items() if pid not in self._killed and name in (None, n)}
            if alive:
                chosen = self.random.choice(sorted(alive))
                self._killed.add(alive[chosen])
                if self.life.kill_node(alive[chosen]):
                    self.outcome.kills += 1
                    return chosen
            self._pause(_LOOK_SECONDS)

    def kill_driver(self, *, jvm_too: bool) -> None:
        """Lose the driver and start the next one at once, while what it left may still be there."""
        self._left.update(self.life.kill(jvm_too=jvm_too))
        self.outcome.restarts += 1
        self.start()

    def start_again(self, *, while_running: bool = False) -> None:
        """The next life of the driver, after the one before, or beside it."""
        if not while_running:
            self._left.update(self.life.leavings if "spark" in self.life.facts else {})
        self.outcome.restarts += 1
        self.start()

    def change(self, **settings: Any) -> None:
        """For the lives to come."""
        self.settings = replace(self.settings, **settings)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.outcome.wrong.append(otherwise)

    def expect_progress(self, seconds: float) -> None:
        """Two more batches are applied in time, and the job says that it is running."""
        self.expect_progress_beyond(self.life.published_batch + 1, seconds)

    def expect_progress_beyond(self, batch: int, seconds: float) -> None:
        began = time.monotonic()
        self.life.wait_for(lambda: self.life.published_batch > batch, min(began + seconds, self._deadline))
        self.outcome.progress_seconds = max(self.outcome.progress_seconds, time.monotonic() - began)
        self.expect(self.life.status["state"] == "running", f"a job that works says: {self.life.status['state']}")

    def expect_end(self, seconds: float, why: str, life: Life | None = None) -> str:
        """The driver ends by itself, in time; what it said."""
        return (life or self.life).wait_for_end(seconds, why)

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        while not holds():
            self._pause(_LOOK_SECONDS)
            if time.monotonic() > self._deadline:
                raise TimeoutError(f"waited for {what}")

    def kill_executor(self) -> None:
        """Kill the JVM of an executor that hosts nodes, and so their processes."""
        found: list[int] = []
        while not found:
            self._pause(_LOOK_SECONDS)
            found = [pid for pid in self.life.executors_with_nodes() if pid not in self._killed]
        chosen = self.random.choice(found)
        self._killed.add(chosen)
        if processes.kill(chosen):
            self.outcome.executors += 1

    def lose_store(self, seconds: float, *, brutally: bool = False) -> None:
        """Stop the S3 server and start it again."""
        assert self._server is not None
        (self._server.kill if brutally else self._server.stop)()
        time.sleep(seconds)
        self._server.start()
        self.outcome.outages += 1

    def sleep(self, most_seconds: float) -> None:
        """For a random time up to that."""
        self._pause(self.random.uniform(0, most_seconds))

    def finish(self) -> Outcome:
        """Look at its health, let the job end gracefully, and judge."""
        self.outcome.wrong += api_probe.find_untruth(self.life, _HEALTH_SECONDS)
        facts = self.life.finish(self._deadline)
        outcome = self.outcome
        outcome.orphans = processes.kill_left(self._left, _ORPHAN_SECONDS)
        outcome.recoveries = [recovery for life in self._lives for recovery in life.recoveries]
        outcome.reader_restarts = facts["reader_restarts"]
        outcome.stop_seconds = facts["stop_seconds"]
        self.expect(outcome.stop_seconds < _STOP_SECONDS, f"stop() took {outcome.stop_seconds:.0f} s")
        last_batch = facts["last_batch"]
        state = pq.read_table(Path(self.settings.folder, STATE))
        outcome.rows, outcome.keys = (last_batch + 1) * self.settings.rows, len(state["key"].unique())
        outcome.hash = content_hash(state)
        if facts["unsaved_batches"]:
            outcome.wrong.append(f"{facts['unsaved_batches']} committed batches are not included in the saved states")
        outcome.wrong += facts["wrong"] + [wrong for life in self._lives[:-1] for wrong in life.status.get("wrong", ())]
        for life in self._lives:
            for end, count in life.status.get("migrations", {}).items():
                outcome.migrations[end] = outcome.migrations.get(end, 0) + count
        outcome.wrong += self.settings.find_mistakes(last_batch, state, self._outputs())
        outcome.seconds = time.monotonic() - self._began
        return outcome

    def close(self) -> None:
        """End everything that is still there."""
        processes.kill_left(self._left, 0.0)
        for life in self._lives:
            life.close()

    def _outputs(self) -> pa.Table:
        if self.settings.sink == "stream":
            return pq.read_table(Path(self.settings.folder, OUTPUTS))
        settings = {} if self._server is None else self._server.settings()
        store = storage.open(self.settings.outputs_url, **settings)
        files = [entry.key for entry in store.list("batch-")]
        return pa.concat_tables(pq.read_table(pa.BufferReader(bytes(store.get(key)))) for key in files)

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)
        self.life.check()
        if time.monotonic() > self._deadline:
            raise TimeoutError("the run takes longer than it may")


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """The job has begun; it is over at the end, whatever happens."""
    try:
        run.start()
        yield run
    finally:
        run.close()
