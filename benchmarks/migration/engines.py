"""The engines: each can be filled with state and scaled, and reports its response times."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

import elastic
from benchmarks.migration.measures import Move, Responses, Window
from benchmarks.migration.operator import NewestPayload
from benchmarks.migration.results import PublishedResults
from benchmarks.migration.spark_way import SparkQuery
from benchmarks.migration.stream import PAYLOAD_BYTES, Stream
from elastic.control import MODES

NODES = 8
SPARK = "Spark: stop, repartition, restart"
WARM_WITH_STANDBYS = "warm with a standby"
_SETTINGS: Mapping[str, Mapping[str, Any]] = {WARM_WITH_STANDBYS: {"standbys": 1}}
_MODES = {
    **{mode: mode for mode in MODES if mode != "auto"},
    WARM_WITH_STANDBYS: "warm",
}  # of this engine, by the engine's name
_JOB = "bench"
_CLOCK = "clock.json"
_POLL_SECONDS = 0.01
_TIMEOUT_SECONDS = 600.0


class Engine(Protocol):
    """A running engine on a stream."""

    def wait_for_batches(self, count: int) -> None:
        """Wait until this many batches are applied."""
        ...

    def scale(self, nodes: int) -> Move: ...

    def responses(self, since: int) -> Responses: ...


class ElasticJob:
    """This engine, scaled in one mode by default."""

    def __init__(self, job: "elastic.SparkJob", store: Path, mode: str) -> None:
        self.job = job
        self.results = PublishedResults(store, _JOB, NewestPayload.__name__)
        self.mode = mode

    def wait_for_batches(self, count: int) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (done := self.job.status().published_batch + 1) < count:
            if self.job.await_termination(_POLL_SECONDS) or time.monotonic() > deadline:
                raise TimeoutError(
                    f"{done} of {count} batches are done. Look at the job's log, or use a smaller --state-mb."
                )

    def scale(self, nodes: int, **options: Any) -> Move:
        """Scale with further options of `Job.scale`; measured work is never quite even, so caps may be relaxed."""
        began = _now_us()
        migration = self.job.scale(nodes, **{"mode": self.mode, "relax": True, **options})
        moving: list[int] = []
        while not migration.wait(_POLL_SECONDS):
            if migration.phase == "moving":
                moving += [_now_us()]
        ended = _now_us()
        moved = {move.task for move in migration.plan.moves}
        return Move(
            Window(began, ended),
            Window(moving[0], moving[-1]) if moving else Window(began, ended),
            migration.plan.cost,
            migration.progress().stored_bytes,
            frozenset(range(migration.plan.current.tasks)) - moved,
        )

    def responses(self, since: int) -> Responses:
        return self.results.responses(since)


@contextmanager
def _elastic_job(spark: SparkSession, stream: Stream, clock: Path, name: str) -> Iterator[ElasticJob]:
    store = clock.parent / "store"
    job = elastic.run(
        stream.frame(spark, clock),
        key="key",
        operator=NewestPayload(PAYLOAD_BYTES),
        name=_JOB,
        nodes=NODES,
        store=store.as_uri(),
        trigger={"processingTime": stream.trigger},
        **_SETTINGS.get(name, {}),
    )
    try:
        yield ElasticJob(job, store, _MODES[name])
    finally:
        job.stop(drain=False)


@contextmanager
def _spark_query(spark: SparkSession, stream: Stream, clock: Path) -> Iterator[SparkQuery]:
    query = SparkQuery(spark, stream, clock, NODES)
    try:
        yield query
    finally:
        query.stop()


def engine_names() -> list[str]:
    """Return every mode, warm hand-overs with standbys, then Spark's own way."""
    return [*_MODES, SPARK]


@contextmanager
def run_engine(name: str, spark: SparkSession, stream: Stream) -> Iterator[tuple[Engine, Path]]:
    """Run an engine in a folder of its own; yield it and the file that starts its clock."""
    with _create_folder() as folder:
        clock = folder / _CLOCK
        engine: Any = _spark_query(spark, stream, clock) if name == SPARK else _elastic_job(spark, stream, clock, name)
        with engine as running:
            yield running, clock


@contextmanager
def run_job(spark: SparkSession, stream: Stream, name: str = "progressive") -> Iterator[tuple[ElasticJob, Path]]:
    """Run this engine in the mode of that name; yield it and the file that starts its clock."""
    with _create_folder() as folder, _elastic_job(spark, stream, folder / _CLOCK, name) as job:
        yield job, folder / _CLOCK


@contextmanager
def _create_folder() -> Iterator[Path]:
    # Tasks that Spark cancels continue for a moment, and may still write.
    with tempfile.TemporaryDirectory(prefix="bench-migration-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _now_us() -> int:
    return time.time_ns() // 1_000
