"""Prints one table of all engines and one of growth, and draws a picture. Takes about a quarter of an hour.

All engines run one after the other in one Spark session, several rounds, on the same stream, trigger, checkpoint files
and disk, each with its own durability on: nothing here is kept in memory only.
"""

import statistics
from collections import defaultdict
from pathlib import Path

import click
import matplotlib as mpl
from pyspark.sql import SparkSession

import elastic
from benchmarks.report import RESULTS, table
from benchmarks.runtime.engines import ENGINES, running
from benchmarks.runtime.measures import Triggers, memory_per_node, rows_per_second, triggers
from benchmarks.runtime.stream import Stream

NODES = 4
KEYS = 10_000
SLOW = "transformWithState, RocksDB"  # so slow that it gets fewer rows, and one round
VOLUME = {name: Stream(5_000 if name == SLOW else 1_000_000, KEYS) for name in ENGINES}
LOW_RATE = Stream(1_000, KEYS, every="400 milliseconds")
OURS = "spark-elastic, files"


def volume(spark: SparkSession, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(rounds):
        for name, stream in VOLUME.items():
            if name == SLOW and number:
                continue
            with running(name, spark, stream, NODES) as query:
                few = name == SLOW
                speed = rows_per_second(query, stream.rows, warm_up=1 if few else 4, batches=2 if few else 8)
            found[name].append(speed)
            click.echo(f"round {number + 1}: {name}: {speed:,.0f} rows/s")
    return found


def latency(spark: SparkSession) -> dict[str, Triggers]:
    found = {}
    for name in ENGINES:
        few = name == SLOW
        with running(name, spark, LOW_RATE, NODES) as query:
            found[name] = triggers(query, warm_up=2 if few else 20, batches=6 if few else 80)
        click.echo(f"{name}: {found[name]}")
    return found


def growth(spark: SparkSession) -> tuple[dict[int, float], dict[int, float], dict[int, tuple[float, float]]]:
    """Rows a second against nodes and against keys, and the memory of a node."""
    by_nodes, by_keys, memory = {}, {}, {}
    for nodes in (1, 2, 4, 8, 16):
        with running(OURS, spark, VOLUME[OURS], nodes) as query:
            by_nodes[nodes] = rows_per_second(query, VOLUME[OURS].rows, warm_up=4, batches=8)
            mapped = memory_per_node(query)
            memory[nodes] = (statistics.median(m[0] for m in mapped), statistics.median(m[1] for m in mapped))
        click.echo(f"{nodes} nodes: {by_nodes[nodes]:,.0f} rows/s, {memory[nodes]} MB")
    for keys in (10_000, 100_000, 1_000_000, 10_000_000):
        stream = Stream(VOLUME[OURS].rows, keys)
        with running(OURS, spark, stream, NODES) as query:
            # All keys are known after the warm-up, so what is measured is counting, not growing.
            warm_up = 4 + keys // stream.rows
            by_keys[keys] = rows_per_second(query, stream.rows, warm_up=warm_up, batches=8)
        click.echo(f"{keys:,} keys: {by_keys[keys]:,.0f} rows/s")
    return by_nodes, by_keys, memory


def picture(speeds: dict[str, list[float]], spent: dict[str, Triggers]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
    names = list(reversed(ENGINES))
    left.barh(names, [statistics.median(speeds[name]) for name in names], color="#4c72b0")
    left.set(xscale="log", xlabel="rows a second, median of rounds", title="at volume")
    right.barh(names, [spent[name].p99 for name in names], color="#dddddd", label="p99")
    right.barh(names, [spent[name].p50 for name in names], color="#55a868", label="p50")
    right.set(xscale="log", xlabel="milliseconds a trigger", title=f"{LOW_RATE.rows} rows every {LOW_RATE.every}")
    right.legend()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "runtime.png"
    figure.savefig(path, dpi=120)
    return path


@click.command()
@click.option("--rounds", default=3, help="how often every engine is measured at volume")
@click.option("--growth/--no-growth", "with_growth", default=True, help="also measure against nodes and keys")
def main(rounds: int, with_growth: bool) -> None:
    """Compare this engine with Spark's own on one stream."""
    spark = elastic.local_session(16, spark_driver_memory="4g", spark_ui_showConsoleProgress="false")
    spark.sparkContext.setLogLevel("OFF")
    speeds, spent = volume(spark, rounds), latency(spark)
    rows = [
        [
            name,
            f"{statistics.median(speeds[name]):,.0f}",
            f"{min(speeds[name]):,.0f} - {max(speeds[name]):,.0f}",
            f"{statistics.median(speeds[OURS]) / statistics.median(speeds[name]):.2f}",
            *(f"{value:.0f}" for value in spent[name][:3]),
        ]
        for name in ENGINES
    ]
    header = ["engine", "rows/s", "spread", "ours is times", "trigger p50 ms", "p95", "p99"]
    print(table(f"{KEYS:,} keys, {NODES} nodes or state partitions, durability on", header, rows), flush=True)
    if with_growth:
        by_nodes, by_keys, memory = growth(spark)
        rows = [[str(n), f"{s:,.0f}", f"{memory[n][0]:.0f}", f"{memory[n][1]:.0f}"] for n, s in by_nodes.items()]
        print(table("against nodes", ["nodes", "rows/s", "MB a node, resident", "proportional"], rows))
        print(table("against keys", ["keys", "rows/s"], [[f"{k:,}", f"{s:,.0f}"] for k, s in by_keys.items()]))
    print(f"\npicture: {picture(speeds, spent).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
