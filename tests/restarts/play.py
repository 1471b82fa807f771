"""Plays a cell on Spark: two runs of one job over one stream of files, and what is wrong with the outcome."""

import json
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import elastic
import storage
from elastic.results import ResultLog
from storage import Secret
from storage.state import Manifest, Manifests
from tests.restarts.ledger import KEYS, TASKS, Batch, Expected, Ledger, lines_of, rows_of
from tests.restarts.matrix import Cell

NAME = "ledger"
SECRET = "a secret of the restart matrix"  # noqa: S105 - of tests only
_OWN, _SHARED = 2, 2  # files that a run must ingest itself, and files that either may ingest
_SECONDS = 60.0  # of a wait; batches take a fraction of a second
_SINK_SECONDS = 10.0  # until a published batch is in its sink
_DELAYS = {"0 seconds": 0, "5 seconds": 5_000}


class Play:
    """One cell in one folder."""

    def __init__(self, spark: SparkSession, cell: Cell, folder: Path) -> None:
        self._spark = spark
        self._cell = cell
        self._folder = folder
        self._store = folder / "store"
        self._checkpoint = folder / "checkpoint"
        self._files: list[list[dict[str, Any]]] = []
        self._source = folder / "source"
        self._source.mkdir()

    def run(self) -> list[str]:
        """What is wrong; nothing, if all is well."""
        cell = self._cell
        self._write_files(cell.first, _OWN)
        with self._running(cell.first) as job:
            self._wait(job, lambda: job.batches()[0] >= _OWN - 1, "the first run to ingest its files")
            self._write_files(None, _SHARED)
            self._end(job)
        ingested = self._ingested()
        self._move()
        self._write_files(cell.second, _OWN)
        with self._running(cell.second) as job:
            last = len(self._files) - 1
            self._wait(job, lambda: job.batches()[1] >= last, f"the second run to apply batch {last}")
            return self._judge(job, ingested)

    @contextmanager
    def _running(self, run: dict[str, Any]) -> Iterator["elastic.SparkJob"]:
        job = self._start(run)
        try:
            yield job
        finally:
            job.stop(drain=False)

    def _write_files(self, run: dict[str, Any] | None, count: int) -> None:
        """With rows that the run's own settings decide about, or without, if either run may ingest them."""
        for _ in range(count):
            number = len(self._files)
            with_null = run is not None and run["null_keys"] != "fail"
            with_failure = run is not None and self._skips(run)
            rows = rows_of(number, with_null=with_null, with_failure=with_failure)
            self._files.append(rows)
            text = "\n".join(json.dumps({**row, "ts": row["ts"] / 1_000}) for row in rows)
            hidden = self._source / f".{number:04d}.json"
            hidden.write_text(text)
            os.utime(hidden, (1_000_000 + number, 1_000_000 + number))  # Spark takes files in this order
            hidden.rename(self._source / f"{number:04d}.json")

    def _skips(self, run: dict[str, Any]) -> bool:
        """Whether rows that fail are skipped whenever they are processed: the second run may repeat the first one's."""
        runs = (run, self._cell.second) if self._cell.end != "stop" else (run,)
        return all(one["on_error"] == "skip" for one in runs)

    def _start(self, run: dict[str, Any]) -> "elastic.SparkJob":
        reader = self._spark.readStream.schema("key string, value long, ts double").option("maxFilesPerTrigger", 1)
        frame = reader.json(str(self._source)).selectExpr(
            "key", "value", "timestamp_millis(CAST(ts * 1000 AS LONG)) ts"
        )
        sink = f"parquet:{(self._folder / 'parquet').as_uri()}" if run["sink"] == "parquet" else run["sink"]
        return elastic.run(
            frame,
            key="key",
            operator=Ledger(),
            name=NAME,
            store=self._store.as_uri(),
            tasks=TASKS,
            checkpoint=str(self._checkpoint),
            event_time="ts",
            secret=SECRET,
            **{**run, "sink": sink},
        )

    def _end(self, job: "elastic.SparkJob") -> None:
        if self._cell.end == "kill":
            for node in job.status().nodes:
                os.kill(node.pid, signal.SIGKILL)
        job.stop(drain=self._cell.end == "stop")

    def _move(self) -> None:
        if self._cell.moved == "store":
            self._store = self._store.rename(self._folder / "moved store")
        elif self._cell.moved == "checkpoint":
            self._checkpoint = Path(shutil.copytree(self._checkpoint, self._folder / "copied checkpoint"))

    def _ingested(self) -> int:
        """How many files the first run has committed."""
        source = self._manifest().source
        return 0 if source is None else source.batch + 1

    def _manifest(self) -> Manifest:
        with closing(storage.open(self._store.as_uri())) as store:
            manifest = Manifests(store, Secret.of(SECRET), NAME).latest()
        assert manifest is not None
        return manifest

    def _judge(self, job: "elastic.SparkJob", ingested: int) -> list[str]:
        expected = Expected()
        expected.take([self._batch(number, number < ingested) for number in range(len(self._files))])
        wrong = [
            f"the state of {key} is {found}, not {expected.state(key)}"
            for key in KEYS
            if (found := job.state(key)) != expected.state(key)
        ]
        wrong += self._wrong_results(expected, ingested)
        return wrong + self._wrong_sink(job, expected, self._first_kept(ingested))

    def _wrong_sink(self, job: "elastic.SparkJob", expected: Expected, first: int) -> list[str]:
        """Of the second run's sink, which gets all results that are kept, soon after they are published."""
        read: dict[str, Callable[[], pa.Table]] = {
            "memory": job.collected,
            "parquet": lambda: pq.read_table(self._folder / "parquet"),
        }
        if self._cell.second["sink"] not in read:
            return []
        ends = time.monotonic() + _SINK_SECONDS
        while wrong := self._wrong_rows(read[self._cell.second["sink"]](), expected, first):
            if time.monotonic() > ends:
                return wrong
            time.sleep(0.05)
        return []

    def _batch(self, number: int, by_first: bool) -> Batch:
        run = self._cell.first if by_first else self._cell.second
        return Batch(self._files[number], run["null_keys"], run["on_error"], _DELAYS[run["watermark_delay"]])

    def _first_kept(self, ingested: int) -> int:
        """The first batch whose results must be in the log: a run without a sink keeps none."""
        return ingested if self._cell.first["sink"] == "none" else 0

    def _wrong_results(self, expected: Expected, ingested: int) -> list[str]:
        """Of the log: every batch of a run that keeps results; of a run that does not, none or the right ones."""
        with closing(storage.open(self._store.as_uri())) as store:
            log = ResultLog(store, Secret.of(SECRET), NAME)
            published = log.poll()
            found = {batch: lines_of(log.read(batch, "Ledger")) for batch in published}
        last = ingested if self._cell.second["sink"] == "none" else len(self._files)
        if self._cell.end != "stop" and self._cell.second["sink"] == "none":
            last = _OWN if self._cell.first["sink"] != "none" else 0  # what came after may have been left to the second
            last = min(last, max(published, default=-1) + 1)
        missing = [batch for batch in range(self._first_kept(ingested), last) if batch not in found]
        problems = [f"the results of batches {missing} are missing"] if missing else []
        for batch, lines in found.items():
            if lines != expected.results[batch] and (lines or batch >= self._first_kept(ingested)):
                problems.append(f"the results of batch {batch}: {_difference(lines, expected.results[batch])}")
        return problems

    def _wrong_rows(self, rows: pa.Table, expected: Expected, first: int) -> list[str]:
        found: dict[int, Counter[str]] = {}
        for batch in set(rows["_batch"].to_pylist()):
            found[batch] = lines_of(rows.filter(pc.equal(rows["_batch"], batch)))
        return [
            f"the sink has of batch {batch} {_difference(found.get(batch, Counter()), expected.results[batch])}"
            for batch in range(first, len(expected.results))
            if found.get(batch, Counter()) != expected.results[batch]
        ]

    def _wait(self, job: "elastic.SparkJob", holds: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + _SECONDS
        while not holds():
            job.await_termination(0)  # raises what ended it
            if time.monotonic() > ends:
                raise TimeoutError(f"waited {_SECONDS:g} s for {what}")
            time.sleep(0.02)


def _difference(found: Counter[str], expected: Counter[str]) -> str:
    return f"{dict(found - expected)} instead of {dict(expected - found)}"
