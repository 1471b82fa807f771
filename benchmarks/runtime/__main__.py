"""Prints one table of all engines and two of scalability, and draws a chart. Takes about a quarter of an hour.

All engines run one after the other in one Spark session, several rounds, on the same stream, trigger, checkpoint files
and disk, each with durable state.
"""

import statistics
from collections import defaultdict
from pathlib import Path

import click
import matplotlib as mpl
from pyspark.sql import SparkSession

import elastic
from benchmarks.report import RESULTS, table
from benchmarks.runtime.engines import ENGINES, run_engine
from benchmarks.runtime.measures import Triggers, measure_memory, measure_throughput, measure_triggers
from benchmarks.runtime.stream import Stream

NODES = 4
ROWS = 1_000_000  # per batch, at full load
FEW_KEYS, MANY_KEYS = 10_000, 1_000_000  # repeated within a batch, and hardly repeated
SLOW = "transformWithState, RocksDB"  # gets fewer rows and one round, because it is slow
SLOW_ROWS = 5_000
LOW_RATE = Stream(1_000, FEW_KEYS, every="400 milliseconds")
OURS = "spark-elastic, files"

Speeds = dict[tuple[str, int], list[float]]  # by engine and number of keys


def measure_speeds(spark: SparkSession, rounds: int) -> Speeds:
    found: Speeds = defaultdict(list)
    for number in range(rounds):
        for keys in (FEW_KEYS, MANY_KEYS):
            for name in ENGINES:
                if name == SLOW and number:
                    continue
                found[name, keys].append(measure_speed(spark, name, keys))
                click.echo(f"round {number + 1}: {name}, {keys:,} keys: {found[name, keys][-1]:,.0f} rows/s")
    return found


def measure_speed(spark: SparkSession, name: str, keys: int) -> float:
    """Return the rows per second once all keys exist, so that the growth of state is not part of it."""
    if name == SLOW:
        with run_engine(name, spark, Stream(SLOW_ROWS, keys), NODES) as engine:
            return measure_throughput(engine, SLOW_ROWS, warm_up=1, batches=2)
    batches = 16 if keys == FEW_KEYS else 6
    with run_engine(name, spark, Stream(ROWS, keys), NODES) as engine:
        return measure_throughput(engine, ROWS, warm_up=4 + keys // ROWS, batches=batches)


def measure_latencies(spark: SparkSession) -> dict[str, Triggers]:
    found = {}
    for name in ENGINES:
        few = name == SLOW
        with run_engine(name, spark, LOW_RATE, NODES) as engine:
            found[name] = measure_triggers(engine, warm_up=2 if few else 20, batches=6 if few else 80)
        click.echo(f"{name}: {found[name]}")
    return found


def measure_scalability(
    spark: SparkSession,
) -> tuple[dict[int, float], dict[int, float], dict[int, tuple[float, float]]]:
    """Return rows per second by nodes and by keys, and the memory per node."""
    by_nodes, by_keys, memory = {}, {}, {}
    for nodes in (1, 2, 4, 8, 16):
        with run_engine(OURS, spark, Stream(ROWS, FEW_KEYS), nodes) as engine:
            by_nodes[nodes] = measure_throughput(engine, ROWS, warm_up=4, batches=12)
            mapped = measure_memory(engine)
            memory[nodes] = (statistics.median(m[0] for m in mapped), statistics.median(m[1] for m in mapped))
        click.echo(f"{nodes} nodes: {by_nodes[nodes]:,.0f} rows/s, {memory[nodes]} MB")
    for keys in (10_000, 100_000, 1_000_000, 10_000_000):
        with run_engine(OURS, spark, Stream(ROWS, keys), NODES) as engine:
            by_keys[keys] = measure_throughput(engine, ROWS, warm_up=4 + keys // ROWS, batches=12)
        click.echo(f"{keys:,} keys: {by_keys[keys]:,.0f} rows/s")
    return by_nodes, by_keys, memory


def draw_chart(speeds: Speeds, spent: dict[str, Triggers]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
    names = list(reversed(ENGINES))
    places = range(len(names))
    for keys, shift, colour in ((FEW_KEYS, 0.2, "#4c72b0"), (MANY_KEYS, -0.2, "#8fb0dd")):
        medians = [statistics.median(speeds[name, keys]) for name in names]
        left.barh([place + shift for place in places], medians, 0.4, color=colour, label=f"{keys:,} keys")
    left.set_yticks(places, names)
    left.set(xscale="log", xlabel="rows per second, median of rounds", title="at full load")
    left.legend()
    right.barh(places, [spent[name].p99 for name in names], color="#dddddd", label="p99")
    right.barh(places, [spent[name].p50 for name in names], color="#55a868", label="p50")
    right.set(xscale="log", xlabel="milliseconds per trigger", title=f"{LOW_RATE.rows} rows every {LOW_RATE.every}")
    right.legend()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "runtime.png"
    figure.savefig(path, dpi=120)
    return path


def format_speeds(speeds: Speeds, name: str, keys: int) -> tuple[str, str, str]:
    """Return the median, the spread, and the speed-up of this engine."""
    found = speeds[name, keys]
    median = statistics.median(found)
    times = statistics.median(speeds[OURS, keys]) / median
    return f"{median:,.0f}", f"{min(found):,.0f} - {max(found):,.0f}", f"{times:.2f}"


@click.command()
@click.option("--rounds", default=3, help="Measurements of every engine at full load.")
@click.option("--scalability/--no-scalability", default=True, help="Also measure by nodes and by keys.")
def main(rounds: int, scalability: bool) -> None:
    """Compare this engine with Spark's own on one stream."""
    spark = elastic.local_session(16, spark_driver_memory="4g")
    spark.sparkContext.setLogLevel("OFF")
    speeds, spent = measure_speeds(spark, rounds), measure_latencies(spark)
    rows = [
        [
            name,
            *(cell for keys in (FEW_KEYS, MANY_KEYS) for cell in format_speeds(speeds, name, keys)),
            *(f"{value:.0f}" for value in spent[name][:3]),
        ]
        for name in ENGINES
    ]
    load_columns = [
        f"{what}{keys:,} keys" for keys in (FEW_KEYS, MANY_KEYS) for what in ("rows/s, ", "spread, ", "speed-up, ")
    ]
    header = ["engine", *load_columns, "trigger p50 ms", "p95", "p99"]
    print(table(f"{NODES} nodes or state partitions, durable state", header, rows), flush=True)
    if scalability:
        by_nodes, by_keys, memory = measure_scalability(spark)
        rows = [[str(n), f"{s:,.0f}", f"{memory[n][0]:.0f}", f"{memory[n][1]:.0f}"] for n, s in by_nodes.items()]
        print(table("by nodes", ["nodes", "rows/s", "MB per node, resident", "proportional"], rows))
        print(table("by keys", ["keys", "rows/s"], [[f"{k:,}", f"{s:,.0f}"] for k, s in by_keys.items()]))
    print(f"\nchart: {draw_chart(speeds, spent).relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
