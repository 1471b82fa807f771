"""The effect of moving keys on the batches of a running job: `python -m benchmarks.rekeying`, or `make bench-rekeying`.

A job on a local Spark has keys that hold four kilobytes of state each, on a file store. Again and again keys with a
given amount of state move to another node with one batch, and back home with another. The table compares the batch that
takes them along with the batches before and after it; times are from the commit of a batch until its results are
published. Takes two minutes.
"""

import os
import random
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa

import elastic
from benchmarks.report import RESULTS, table
from elastic.control.key_portions import measure_overhead
from elastic.core import events
from elastic.core.view import JobView
from elastic.operators import Context, KeyedOperator, Stage, ValueState
from elastic.operators.key_records import RecordBytes, measure_records
from elastic.operators.key_sizes import sample_sizes
from elastic.operators.stages import build_runners
from elastic.routing import KeyTargets, hash_key

NODES, TASKS, KEYS, ROWS = 4, 64, 10_000, 20_000
VALUE_BYTES = 4_000
SETTLE_BATCHES = 8
BATCH_MS = 500


class Payload(KeyedOperator):
    """Keeps four kilobytes for every key."""

    output_schema = "key long"

    def handle_key(self, key: int, _rows: list[object], state: ValueState, _: Context) -> None:
        if not state.exists():
            state.update(random.Random(key).randbytes(VALUE_BYTES))  # noqa: S311 - bytes that do not compress


class Sample(NamedTuple):
    """One rekeying: milliseconds of the batch that took it, and of those before and after; bytes planned and logged."""

    before_ms: float
    with_ms: float
    after_ms: float
    plan_bytes: float
    stored_bytes: int
    overhead: float  # of the log over the states alone

    @property
    def added_ms(self) -> float:
        return self.with_ms - self.before_ms


class BatchTimes:
    """When each batch was committed and when it was published, as the driver's views tell."""

    def __init__(self, job: elastic.SparkJob) -> None:
        self._committed: dict[int, float] = {}
        self._published: dict[int, float] = {}
        self._job = job
        self._stopping = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def milliseconds(self, batch: int) -> float:
        return 1_000 * (self._published[batch] - self._committed[batch])

    def stop(self) -> None:
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            newest, published = self._job.batches()
            now = time.perf_counter()
            for times, batch in ((self._committed, newest), (self._published, published)):
                for number in range(max(times, default=batch - 1) + 1, batch + 1):
                    times[number] = now
            time.sleep(0.001)


def measure(
    job: elastic.SparkJob, times: BatchTimes, hashes: Sequence[int], records: RecordBytes, *, home: bool
) -> Sample:
    """Move these keys with one batch, and return how long that batch and its neighbours took."""
    away = TASKS // NODES  # the same task of the next node
    targets = KeyTargets.from_mapping(0, {hashed: None if home else (hashed + away) % TASKS for hashed in hashes})
    request_id = secrets.token_hex(4)
    driver = job._driver  # noqa: SLF001 - a plan would move the keys that it chooses
    routing = driver.view.routing
    overhead = measure_overhead(targets, routing.assignment, routing.groupings, records)
    plan_bytes = len(hashes) * Payload().state_size({KEYS: bytes(VALUE_BYTES)}) + overhead  # as plans count them
    first = job.batches()[0]
    driver.post(events.RekeyRequested(request_id, (targets,), (plan_bytes,)))

    def is_over(view: JobView) -> bool:
        return view.rekeying is not None and view.rekeying.id == request_id and view.rekeying.is_over

    view = driver.views.wait_for(is_over, 60.0, "keys to move").rekeying
    assert view is not None  # noqa: S101 - for the type checker
    batch = next(int(line.split()[1]) for line in view.story if line.startswith("batch "))
    wait_for(lambda: job.batches()[1] >= batch + 4)
    before = [times.milliseconds(number) for number in range(first - 2, batch)]
    after = [times.milliseconds(number) for number in range(batch + 1, batch + 4)]
    return Sample(
        float(np.median(before)),
        times.milliseconds(batch),
        float(np.median(after)),
        plan_bytes,
        view.stored_bytes,
        view.stored_bytes / (len(hashes) * VALUE_BYTES) - 1,
    )


def wait_for(is_met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_met():
        if time.monotonic() > deadline:
            raise TimeoutError("the stream does not advance")
        time.sleep(0.05)


@contextmanager
def running() -> Iterator[elastic.SparkJob]:
    os.environ.setdefault("ELASTIC_SECRET", "a secret of this benchmark only")
    spark = elastic.local_session(NODES)
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    rows = source.selectExpr(f"value % {KEYS} AS key")
    with tempfile.TemporaryDirectory(prefix="bench-rekeying-") as folder:
        job = elastic.run(
            rows,
            key="key",
            operator=Stage(Payload(), "key", grouping="table"),
            name="rekeying",
            store=f"file://{folder}/store",
            checkpoint=f"{folder}/checkpoint",
            nodes=NODES,
            tasks=TASKS,
            trigger={"processingTime": f"{BATCH_MS} milliseconds"},
            snapshot_seconds=3_600.0,
        )
        with job:
            wait_for(lambda: job.batches()[1] >= SETTLE_BATCHES)
            yield job
    spark.stop()


def format_samples(samples: Sequence[tuple[float, Sequence[Sample]]]) -> str:
    rows = []
    for megabytes, found in samples:
        columns = [[getattr(one, name) for one in found] for name in ("before_ms", "with_ms", "after_ms", "added_ms")]
        added = columns[-1]
        over_plan = [100 * (one.stored_bytes / one.plan_bytes - 1) for one in found]
        rows.append(
            [
                f"{megabytes:g}",
                *(f"{np.median(values):.0f}" for values in columns),
                f"{min(added):.0f} to {max(added):.0f}",
                f"{np.median(over_plan):+.2f}",
                f"{max(over_plan):+.2f}",
                f"{100 * np.median([one.overhead for one in found]):+.2f}",
            ]
        )
    header = [
        "MB moved",
        "before ms",
        "with ms",
        "after ms",
        "added ms",
        "spread",
        "bytes over plan %",
        "worst %",
        "over states %",
    ]
    return table(f"batches around a rekeying, {NODES} nodes, {ROWS:,} rows per batch, files", header, rows)


@click.command()
@click.option("--repeat", default=4, help="Rekeyings of each size, there and back.")
@click.option("--megabytes", default=(0.1, 1.0, 8.0), multiple=True, help="State to move; repeatable.")
def main(repeat: int, megabytes: tuple[float, ...]) -> None:
    """Measure how long the batch takes that moves keys, beside the others."""
    chance = random.Random(1)  # noqa: S311 - a benchmark repeats itself
    with running() as job:
        times = BatchTimes(job)
        wait_for(lambda: job.batches()[1] >= 2 * SETTLE_BATCHES)
        samples = []
        stages = build_runners([Stage(Payload(), ("key",), grouping="table")], pa.schema([("key", pa.int64())]))
        values = {key: random.Random(key).randbytes(VALUE_BYTES) for key in range(16)}  # noqa: S311 - as states are
        records = measure_records(stages[0]).with_part(sample_sizes(stages[0], values).part)
        for size in (megabytes[0], *megabytes):  # the first one warms up
            hashes = [hash_key(key) for key in chance.sample(range(KEYS), round(size * 1e6 / VALUE_BYTES))]
            turns = range(2 * repeat)
            samples.append((size, [measure(job, times, hashes, records, home=bool(turn % 2)) for turn in turns]))
        times.stop()
    text = format_samples(samples[1:])
    click.echo(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "rekeying.txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
