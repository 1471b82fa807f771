"""Helpers of the Spark tests: streams of files or numbers, jobs on them, and their expected counts."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import elastic
from elastic.operators import Context, CountByKey, Operator, State

SCHEMA = "key string, value long, ts timestamp"
ROWS, KEYS = 2_000, 400  # of every batch of `numbers`, and in all


class Feed:
    """A stream of JSON files; every `send` is at least one batch of its own, once it is processed."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def frame(self, schema: str = SCHEMA) -> DataFrame:
        return self._spark.readStream.schema(schema).json(str(self._folder))

    def send(self, *rows: dict[str, Any]) -> None:
        number = len(list(self._folder.glob("*.json")))
        written = self._folder / f".{number:06d}"  # Spark ignores hidden files
        written.write_text("\n".join(json.dumps(row) for row in rows))
        written.rename(self._folder / f"{number:06d}.json")

    def send_keys(self, *keys: str | None) -> None:
        self.send(*({"key": key, "value": number} for number, key in enumerate(keys)))


def start(frame: DataFrame, store: Path, **changes: Any) -> "elastic.SparkJob":
    """Start a small counting job; `changes` override its arguments."""
    settings: dict[str, Any] = {
        "key": "key",
        "operator": CountByKey(),
        "name": "counts",
        "nodes": 2,
        "tasks": 8,
        "store": store.as_uri(),
        "sink": "memory",
        **changes,
    }
    return elastic.run(frame, **settings)


@contextmanager
def changed_conf(spark: SparkSession, **changes: str) -> Iterator[SparkSession]:
    """Change the configuration of the shared session inside the block; names have underscores for dots."""
    names = {name.replace("_", "."): value for name, value in changes.items()}
    before = {name: str(spark.conf.get(name)) for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield spark
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def until(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return what `holds` returns as soon as it is true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError("not in time")


def numbers(spark: SparkSession) -> DataFrame:
    """Return a stream without end; every batch has `ROWS` rows with predictable keys."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2)
    return source.load().selectExpr(f"pmod(value * 7919, {KEYS}) AS key")


class SlowCounts(Counter[Any]):
    """Counts that take `seconds` to unpickle."""

    def __init__(self, counts: dict[Any, int], seconds: float) -> None:
        super().__init__(counts)
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return _slowly, (dict(self), self.seconds)


def _slowly(counts: dict[Any, int], seconds: float) -> SlowCounts:
    time.sleep(seconds)
    return SlowCounts(counts, seconds)


class CountSlowToMove(Operator):
    """Counts keys without output; states are quick to save and slow to load, so that tests can observe a migration."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds

    def initial_state(self) -> SlowCounts:
        return SlowCounts({}, self._seconds)

    def handle_batch(self, rows: pa.Table, state: State, _: Context) -> None:
        state.value.update(rows[self.key[0]].to_pylist())


def start_slow_to_move(spark: SparkSession, store: Path) -> "elastic.SparkJob":
    """Start a job that counts `numbers` a few times per second, which leaves the processors time for the test."""
    trigger = {"processingTime": "300 milliseconds"}
    operator = CountSlowToMove(seconds=0.4)
    return start(numbers(spark), store, operator=operator, tasks=16, trigger=trigger, sink="none")


def assert_exact(job: "elastic.SparkJob", losses: int = 0) -> None:
    """Assert that a stopped job on `numbers` counted every ingested row exactly once, and lost so many nodes."""
    assert job.status().losses == losses
    total = ROWS * (job.status().last_batch + 1)
    wanted = np.bincount((np.arange(total) * 7919) % KEYS, minlength=KEYS)
    assert {row["key"]: row["value"] for row in job.state_table().collect()} == dict(enumerate(wanted.tolist()))
