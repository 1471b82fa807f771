"""Prints one table of all engines and two of growth, and draws a picture. Takes about a quarter of an hour.

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
ROWS = 1_000_000  # a batch, at volume
FEW_KEYS, MANY_KEYS = 10_000, 1_000_000  # keys that repeat within a batch, and keys that do not
SLOW = "transformWithState, RocksDB"  # so slow that it gets fewer rows, and one round
SLOW_ROWS = 5_000
LOW_RATE = Stream(1_000, FEW_KEYS, every="400 milliseconds")
OURS = "spark-elastic, files"

Speeds = dict[tuple[str, int], list[float]]  # by engine and number of keys


def volume(spark: SparkSession, rounds: int) -> Speeds:
    found: Speeds = defaultdict(list)
    for number in range(rounds):
        for keys in (FEW_KEYS, MANY_KEYS):
            for name in ENGINES:
                if name == SLOW and number:
                    continue
                found[name, keys].append(speed(spark, name, keys))
                click.echo(f"round {number + 1}: {name}, {keys:,} keys: {found[name, keys][-1]:,.0f} rows/s")
    return found


def speed(spark: SparkSession, name: str, keys: int) -> float:
    """Rows a second once all keys are known, so that what is measured is counting, not growing."""
    if name == SLOW:
        with running(name, spark, Stream(SLOW_ROWS, keys), NODES) as query:
            return rows_per_second(query, SLOW_ROWS, warm_up=1, batches=2)
    batches = 16 if keys == FEW_KEYS else 6
    with running(name, spark, Stream(ROWS, keys), NODES) as query:
        return rows_per_second(query, ROWS, warm_up=4 + keys // ROWS, batches=batches)


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
        with running(OURS, spark, Stream(ROWS, FEW_KEYS), nodes) as query:
            by_nodes[nodes] = rows_per_second(query, ROWS, warm_up=4, batches=12)
            mapped = memory_per_node(query)
            memory[nodes] = (statistics.median(m[0] for m in mapped), statistics.median(m[1] for m in mapped))
        click.echo(f"{nodes} nodes: {by_nodes[nodes]:,.0f} rows/s, {memory[nodes]} MB")
    for keys in (10_000, 100_000, 1_000_000, 10_000_000):
        with running(OURS, spark, Stream(ROWS, keys), NODES) as query:
            by_keys[keys] = rows_per_second(query, ROWS, warm_up=4 + keys // ROWS, batches=12)
        click.echo(f"{keys:,} keys: {by_keys[keys]:,.0f} rows/s")
    return by_nodes, by_keys, memory


def picture(speeds: Speeds, spent: dict[str, Triggers]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
    names = list(reversed(ENGINES))
    places = range(len(names))
    for keys, shift, colour in ((FEW_KEYS, 0.2, "#4c72b0"), (MANY_KEYS, -0.2, "#8fb0dd")):
        medians = [statistics.median(speeds[name, keys]) for name in names]
        left.barh([place + shift for place in places], medians, 0.4, color=colour, label=f"{keys:,} keys")
    left.set_yticks(places, names)
    left.set(xscale="log", xlabel="rows a second, median of rounds", title="at volume")
    left.legend()
    right.barh(places, [spent[name].p99 for name in names], color="#dddddd", label="p99")
    right.barh(places, [spent[name].p50 for name in names], color="#55a868", label="p50")
    right.set(xscale="log", xlabel="milliseconds a trigger", title=f"{LOW_RATE.rows} rows every {LOW_RATE.every}")
    right.legend()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "runtime.png"
    figure.savefig(path, dpi=120)
    return path


def speed_cells(speeds: Speeds, name: str, keys: int) -> tuple[str, str, str]:
    """Median, spread, and how many times as fast this engine is."""
    found = speeds[name, keys]
    median = statistics.median(found)
    times = statistics.median(speeds[OURS, keys]) / median
    return f"{median:,.0f}", f"{min(found):,.0f} - {max(found):,.0f}", f"{times:.2f}"


@click.command()
@click.option("--rounds", default=3, help="how often every engine is measured at volume")
@click.option("--growth/--no-growth", "with_growth", default=True, help="also measure against nodes and keys")
def main(rounds: int, with_growth: bool) -> None:
    """Compare this engine with Spark's own on one stream."""
    spark = elastic.local_session(16, spark_driver_memory="4g")
    spark.sparkContext.setLogLevel("OFF")
    speeds, spent = volume(spark, rounds), latency(spark)
    rows = [
        [
            name,
            *(cell for keys in (FEW_KEYS, MANY_KEYS) for cell in speed_cells(speeds, name, keys)),
            *(f"{value:.0f}" for value in spent[name][:3]),
        ]
        for name in ENGINES
    ]
    by_volume = [
        f"{what}{keys:,} keys" for keys in (FEW_KEYS, MANY_KEYS) for what in ("rows/s, ", "spread, ", "ours x, ")
    ]
    header = ["engine", *by_volume, "trigger p50 ms", "p95", "p99"]
    print(table(f"{NODES} nodes or state partitions, durability on", header, rows), flush=True)
    if with_growth:
        by_nodes, by_keys, memory = growth(spark)
        rows = [[str(n), f"{s:,.0f}", f"{memory[n][0]:.0f}", f"{memory[n][1]:.0f}"] for n, s in by_nodes.items()]
        print(table("against nodes", ["nodes", "rows/s", "MB a node, resident", "proportional"], rows))
        print(table("against keys", ["keys", "rows/s"], [[f"{k:,}", f"{s:,.0f}"] for k, s in by_keys.items()]))
    print(f"\npicture: {picture(speeds, spent).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
