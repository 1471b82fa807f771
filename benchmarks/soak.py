"""Resource growth under half an hour of steady load: `make soak`.

Samples memory, threads and open files of the driver, of Spark and of every node, and the objects in the store. Prints
the medians of the first and the last third after a warm-up.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click
import matplotlib as mpl

import elastic
from benchmarks.report import RESULTS, table
from benchmarks.runtime.stream import Stream
from elastic.operators import CountByKey

NODES = 4
STREAM = Stream(rows=20_000, keys=50_000, every="1 second")
WARM_UP_SHARE = 0.2  # caches and pools fill during this time, and must not grow later


class Sample(NamedTuple):
    """Sums over the processes of a kind; `objects` are files in the store."""

    minute: float
    driver_mb: float
    spark_mb: float
    nodes_mb: float
    driver_threads: float
    spark_threads: float
    node_threads: float
    files: float
    objects: float
    store_mb: float
    batches: float


def take_sample(started: float, job: "elastic.SparkJob", store: Path) -> Sample:
    status = job.status()
    nodes = [node.pid for node in status.nodes if node.pid]
    driver, spark = Path("/proc/self"), _find_spark_processes()
    processes = [driver, *spark, *(Path(f"/proc/{pid}") for pid in nodes)]
    sizes = _list_sizes(store)
    return Sample(
        (time.monotonic() - started) / 60,
        _measure_memory_mb([driver]),
        _measure_memory_mb(spark),
        _measure_memory_mb(Path(f"/proc/{pid}") for pid in nodes),
        _count_threads([driver]),
        _count_threads(spark),
        _count_threads(processes[1 + len(spark) :]),
        sum(len(list((process / "fd").iterdir())) for process in processes),
        len(sizes),
        sum(sizes) / 1e6,
        status.published_batch,
    )


def _find_spark_processes() -> list[Path]:
    """Return the children of this process: the JVM, as long as nothing else is started."""
    children = " ".join(listed.read_text() for listed in Path("/proc/self/task").glob("*/children")).split()
    return [Path("/proc") / pid for pid in children]


def _count_threads(processes: Iterable[Path]) -> int:
    return sum(len(list((process / "task").iterdir())) for process in processes)


def _list_sizes(folder: Path) -> list[int]:
    """Return the sizes of all files; the engine may delete files meanwhile."""
    sizes = []
    for parent, _, names in os.walk(folder):  # it skips deleted folders
        for name in names:
            with suppress(FileNotFoundError):
                sizes.append((Path(parent) / name).stat().st_size)
    return sizes


def _measure_memory_mb(processes: Iterable[Path]) -> float:
    lines = [line for process in processes for line in (process / "status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def compare_thirds(samples: list[Sample]) -> list[list[str]]:
    steady = samples[int(len(samples) * WARM_UP_SHARE) :]
    third = max(1, len(steady) // 3)
    rows = []
    for name in Sample._fields[1:-1]:
        first = statistics.median(getattr(sample, name) for sample in steady[:third])
        last = statistics.median(getattr(sample, name) for sample in steady[-third:])
        rows.append([name, f"{first:,.1f}", f"{last:,.1f}", f"{100 * (last / first - 1):+.1f} %"])
    return rows


def draw_chart(samples: list[Sample]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), layout="constrained")
    minutes = [sample.minute for sample in samples]
    for panel, names in zip(
        axes,
        (("driver_mb", "spark_mb", "nodes_mb"), ("driver_threads", "spark_threads", "files"), ("objects",)),
        strict=True,
    ):
        for name in names:
            panel.plot(minutes, [getattr(sample, name) for sample in samples], label=name)
        panel.set(xlabel="minutes", ylim=(0, None))
        panel.legend()
        panel.grid(visible=True, alpha=0.3)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "soak.png"
    figure.savefig(path, dpi=120)
    return path


@click.command()
@click.option("--minutes", default=30.0, show_default=True, help="Duration of the load.")
def main(minutes: float) -> None:
    """Run a steady stream and report what grows."""
    spark = elastic.local_session(NODES, spark_driver_memory="1g")
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        store = Path(folder) / "store"
        job = elastic.run(
            STREAM.frame(spark),
            key="key",
            operator=CountByKey(),
            name="soak",
            nodes=NODES,
            store=store.as_uri(),
            checkpoint=str(Path(folder) / "checkpoint"),
            trigger={"processingTime": STREAM.every},
            retain_result_batches=100,
            snapshot_seconds=5.0,
        )
        started = time.monotonic()
        samples = []
        while time.monotonic() - started < 60 * minutes:
            if job.await_termination(10.0):
                raise SystemExit("the job ended unexpectedly. Look at its log.")
            samples.append(take_sample(started, job, store / "operators"))
            click.echo("  ".join(f"{name} {value:,.1f}" for name, value in samples[-1]._asdict().items()))
        job.stop()
    header = ["measure", "first third", "last third", "change"]
    print(
        table(
            f"{samples[-1].batches:,.0f} batches of {STREAM.rows:,} rows, after a warm-up",
            header,
            compare_thirds(samples),
        )
    )
    print(f"\nchart: {draw_chart(samples).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
