"""Counts words as they arrive: text files dropped into a folder, or lines from a socket.

    python -m examples.word_count texts/                 # every file that appears in texts/
    python -m examples.word_count --socket 127.0.0.1:9999    # after `nc -lk 9999`

Stop it with Ctrl-C and start it again: it continues where it stopped.
"""

from pathlib import Path

import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

import elastic
from elastic.operators import CountByKey


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--socket", help="host:port to read lines from, instead of a folder")
@click.option(
    "--store", default="build/word_count", type=click.Path(path_type=Path), help="folder for state and results"
)
@click.option("--nodes", default=2, help="number of nodes")
@click.option("--top", default=10, help="number of words to print")
@click.option("--once", is_flag=True, help="stop after counting the available input")
def main(folder: Path | None, socket: str | None, store: Path, nodes: int, top: int, once: bool) -> None:
    """Count the words of text files in FOLDER, or of lines from a socket."""
    spark = elastic.local_session(nodes)
    words = lines(spark, folder, socket).select(F.explode(F.split(F.lower("value"), r"\W+")).alias("word"))
    with elastic.run(
        words.where("word != ''"),
        key="word",
        operator=CountByKey(),
        name="word-count",
        nodes=nodes,
        store=store.absolute().as_uri(),
        sink="memory",
    ) as job:
        if once:
            job.process_all_available()
            show(best_of(job, top))
        else:
            show_changes(job, top)


def lines(spark: SparkSession, folder: Path | None, socket: str | None) -> DataFrame:
    if socket is not None:
        host, _, port = socket.rpartition(":")
        return spark.readStream.format("socket").option("host", host).option("port", port).load()
    if folder is None:
        raise click.UsageError("Name a folder with text files, or --socket host:port.")
    return spark.readStream.text(str(folder))


def best_of(job: elastic.SparkJob, top: int) -> list[tuple[str, int]]:
    counts = {row["word"]: row["count"] for row in job.collected().to_pylist()}
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]


def show(best: list[tuple[str, int]]) -> None:
    click.echo("  ".join(f"{word} {count}" for word, count in best))


def show_changes(job: elastic.SparkJob, top: int) -> None:
    """Print the most frequent words whenever they change, until the job ends or Ctrl-C."""
    shown: list[tuple[str, int]] = []
    while not job.await_termination(1.0):
        if (best := best_of(job, top)) != shown:
            show(best)
            shown = best


if __name__ == "__main__":
    main()
