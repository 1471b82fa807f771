"""Prints the rows per second of the same `StatefulProcessor` on both engines, in rows and in pandas, at 100,000 keys.

The engines alternate in one Spark session, on the same stream, trigger and disk, each with durable state. Spark gets
fewer rows, because it is slow: per-row costs dominate on both sides.
"""

import statistics

import click
from pyspark.sql import SparkSession

import elastic
from benchmarks.report import table
from benchmarks.runtime.engines import PROCESSORS, Engine, run_in_folder
from benchmarks.runtime.measures import measure_throughput
from benchmarks.runtime.stream import Stream

NODES = 2
KEYS = 100_000
GOALS = {"rows": 50.0, "pandas": 2.0}  # times Spark's speed


def measure(spark: SparkSession, engine: Engine, rows: int, warm_up: int, batches: int) -> float:
    with run_in_folder(engine, spark, Stream(rows, KEYS), NODES) as running:
        return measure_throughput(running, rows, warm_up=warm_up, batches=batches)


@click.command()
@click.option("--rounds", default=3, help="Measurements of every engine.")
@click.option("--rows", default=KEYS, help="Rows per batch of this engine.")
@click.option("--spark-rows", default=4_000, help="Rows per batch of Spark's engine.")
def main(rounds: int, rows: int, spark_rows: int) -> None:
    """Compare both engines on the same processors."""
    spark = elastic.local_session(8, spark_driver_memory="2g")
    spark.sparkContext.setLogLevel("OFF")
    lines = []
    for form, (ours, theirs) in PROCESSORS.items():
        own, other = [], []
        for number in range(rounds):
            own.append(measure(spark, ours, rows, 2, 4))
            other.append(measure(spark, theirs, spark_rows, 1, 2))
            click.echo(f"round {number + 1}, {form}: {own[-1]:,.0f} rows/s, Spark {other[-1]:,.0f} rows/s")
        times = statistics.median(own) / statistics.median(other)
        spread = [f"{min(found):,.0f} - {max(found):,.0f}" for found in (own, other)]
        speeds = [f"{statistics.median(found):,.0f}" for found in (own, other)]
        lines.append([form, speeds[0], spread[0], speeds[1], spread[1], f"{times:.1f}", f"{GOALS[form]:.0f}"])
    header = ["form", "rows/s", "spread", "Spark rows/s", "spread", "times", "goal"]
    print(table(f"StatefulProcessor, {KEYS:,} keys, {NODES} nodes or state partitions", header, lines))


if __name__ == "__main__":
    main()
