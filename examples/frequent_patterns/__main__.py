"""Prints the maximal frequent patterns of a stream of texts as they change.

python -m examples.frequent_patterns                          # generated texts
python -m examples.frequent_patterns --texts tweets.csv       # the column `text` of a CSV file, repeatedly
python -m examples.frequent_patterns --texts folder/          # every line of the files that appear there
"""

from pathlib import Path
from typing import TextIO

import click
from pyspark.sql import DataFrame, SparkSession

import elastic
from elastic.errors import ElasticError
from examples.frequent_patterns.board import Board, Change
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.local_spark import open_store, quiet_spark
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.sources import read_files, stream_texts
from examples.frequent_patterns.texts import CsvTexts, GeneratedTexts
from examples.frequent_patterns.words import STOP_WORDS

_POLL_SECONDS = 0.2


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--texts",
    type=click.Path(exists=True, path_type=Path),
    help="CSV file with a column `text`, or a folder in which text files appear; generated texts if not given",
)
@click.option("--window", default="20 batches", help="how long a text stays in the window: '20 batches', '90 seconds'")
@click.option("--threshold", default=20, type=click.IntRange(1), help="minimum number of texts of a frequent pattern")
@click.option("--length", default=3, type=click.IntRange(1, 6), help="maximum number of words of a pattern")
@click.option("--words", default=12, type=click.IntRange(1, 64), help="maximum number of words of a text")
@click.option("--stop-words", type=click.File(), help="words to ignore; common English words by default")
@click.option("--dictionary", type=click.File(), help="ignore all other words")
@click.option("--nodes", default=4, type=click.IntRange(1), help="number of nodes")
@click.option("--rate", default=500, type=click.IntRange(1), help="texts per batch, except from a folder")
@click.option("--every", default="1 second", help="interval of batches")
@click.option("--batches", type=click.IntRange(1), help="stop after this many batches; by default at Ctrl-C")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    help="folder that keeps the state for the next run; temporary by default",
)
@click.option("--top", default=8, type=click.IntRange(1), help="patterns to print")
@click.option("--seed", default=0, help="seed of generated texts")
def main(
    texts: Path | None,
    window: str,
    threshold: int,
    length: int,
    words: int,
    stop_words: TextIO | None,
    dictionary: TextIO | None,
    nodes: int,
    rate: int,
    every: str,
    batches: int | None,
    store: Path | None,
    top: int,
    seed: int,
) -> None:
    """Print the maximal frequent patterns of a stream of short texts, on a local Spark, as they change."""
    try:
        mining = Mining(
            threshold,
            length,
            window,
            words,
            STOP_WORDS if stop_words is None else stop_words.read().lower().split(),
            None if dictionary is None else dictionary.read().lower().split(),
        )
        board = Board(PatternPrinter(top))
        with quiet_spark(nodes) as spark, open_store(store) as url:
            frame, trigger = stream(spark, texts, rate, seed), {"processingTime": every}
            with patterns_job(frame, store=url, mining=mining, nodes=nodes, sink=board, trigger=trigger) as job:
                wait(job, board, batches)
    except ElasticError as error:
        raise click.ClickException(str(error)) from error


class PatternPrinter:
    """Prints the most frequent patterns whenever they change."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._shown: list[tuple[str, int]] = []

    def __call__(self, change: Change) -> None:
        best = sorted(change.patterns.items(), key=lambda item: (-item[1], item[0]))[: self._top]
        if best == self._shown:
            return
        self._shown = best
        news = f"{change.appeared} appeared, {change.vanished} vanished"
        lines = [f"batch {change.batch}: {len(change.patterns)} maximal frequent patterns ({news})"]
        click.echo("\n".join([*lines, *(f"{texts:8d}  {pattern}" for pattern, texts in best)]))


def stream(spark: SparkSession, texts: Path | None, rate: int, seed: int) -> DataFrame:
    if texts is not None and texts.is_dir():
        return read_files(spark, texts)
    return stream_texts(spark, GeneratedTexts(seed) if texts is None else CsvTexts.read(texts), rate)


def wait(job: elastic.SparkJob, board: Board, batches: int | None) -> None:
    """Wait for this many batches, or for Ctrl-C."""
    try:
        while batches is None or board.last.batch + 1 < batches:
            job.await_termination(_POLL_SECONDS)
    except KeyboardInterrupt:
        click.echo("stopping ...")


if __name__ == "__main__":
    main()
