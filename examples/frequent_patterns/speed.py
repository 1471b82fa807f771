"""Throughput in texts per second: of the operators alone in this process, and of a job on a local Spark.

    python -m examples.frequent_patterns.speed --texts tweets.csv

The time includes each text's arrival and departure. Only batches after the window is full are measured.
"""

import time
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from elastic.operators.testing import OperatorTester
from examples.frequent_patterns.board import Board
from examples.frequent_patterns.combinations import combinations
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.local_spark import open_store, quiet_spark
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.pipeline import stages
from examples.frequent_patterns.sources import stream_texts
from examples.frequent_patterns.texts import CsvTexts, GeneratedTexts, Texts

_WINDOW = 5  # batches
_SNAPSHOT_BATCHES = 10  # as often as a job at one batch per second


@click.command(context_settings={"show_default": True})
@click.option(
    "--texts",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CSV file of texts; generated if not given",
)
@click.option("--rate", default=3_000, type=click.IntRange(1), help="texts per batch")
@click.option("--batches", default=20, type=click.IntRange(1, 500), help="batches after the window is full")
@click.option("--threshold", default=30, type=click.IntRange(1))
@click.option("--length", default=3, type=click.IntRange(1, 6))
@click.option("--nodes", default=4, type=click.IntRange(1))
@click.option("--tasks", default=32, type=click.IntRange(1))
def main(texts: Path | None, rate: int, batches: int, threshold: int, length: int, nodes: int, tasks: int) -> None:
    """Measure the throughput in texts per second."""
    source: Texts = GeneratedTexts() if texts is None else CsvTexts.read(texts)
    mining = Mining(threshold, length, f"{_WINDOW} batches")
    table = Table(title=f"{rate:,} texts per batch, {_patterns(source, mining, rate):.0f} patterns per text")
    for column in ("where", "texts/s", "pattern counts/s", "processor seconds"):
        table.add_column(column, justify="left" if column == "where" else "right")
    for where, (seconds, processor) in {
        "one process": in_one_process(source, mining, rate, batches, tasks),
        f"Spark, {nodes} nodes": on_spark(source, mining, rate, batches, nodes, tasks),
    }.items():
        speed = rate * batches / seconds
        counts = speed * 2 * _patterns(source, mining, rate)
        table.add_row(where, f"{speed:,.0f}", f"{counts:,.0f}", "" if processor is None else f"{processor:.1f}")
    Console(width=100).print(table)


def in_one_process(texts: Texts, mining: Mining, rate: int, batches: int, tasks: int) -> tuple[float, float | None]:
    """Return wall-clock and processor seconds for the batches after the window is full, without transport and log."""
    tester = OperatorTester(
        stages(mining), key="text", schema="text string", tasks=tasks, nodes=1, snapshot_every=_SNAPSHOT_BATCHES
    )
    began, spent = 0.0, 0.0
    for batch in range(_WINDOW + 1 + batches):
        if batch == _WINDOW + 1:
            began, spent = time.perf_counter(), time.process_time()
        tester.run([pa.table({"text": texts.take(np.arange(rate) + batch * rate)})])
    return time.perf_counter() - began, time.process_time() - spent


def on_spark(
    texts: Texts, mining: Mining, rate: int, batches: int, nodes: int, tasks: int
) -> tuple[float, float | None]:
    """Return the seconds between the results of the first batch after the window is full and those of the last."""
    seen: list[float] = []
    board = Board(lambda _: seen.append(time.perf_counter()))
    with quiet_spark(nodes, "OFF") as spark, open_store(None) as store:
        frame = stream_texts(spark, texts, rate)
        job = patterns_job(frame, store=store, mining=mining, nodes=nodes, tasks=tasks, sink=board)
        while len(seen) <= _WINDOW + 1 + batches:
            job.await_termination(0.1)
        job.stop(drain=False)
    return seen[_WINDOW + 1 + batches] - seen[_WINDOW + 1], None


def _patterns(texts: Texts, mining: Mining, rate: int) -> float:
    words = mining.vocabulary.to_canonical(texts.take(np.arange(rate)))
    return len(combinations(words.drop_null(), 1, mining.length)[0]) / rate


if __name__ == "__main__":
    main()
