"""`elastic demo`: everything once, in about a minute and a half, on this machine alone."""

import sys
import time
import webbrowser
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import elastic
from elastic.api import serve
from elastic.cli.connection import Connection, announced
from elastic.errors import ElasticError
from examples.demo import report
from examples.demo.acts import Acts
from examples.demo.diary import Diary
from examples.demo.picture import draw
from examples.demo.proof import Proof, prove
from examples.demo.quiet import errors_to
from examples.demo.source import clocked_numbers, start_of
from examples.demo.stores import opened
from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.board import Board
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.local import quiet_spark
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.sources import texts_of_numbers
from examples.frequent_patterns.texts import MadeTexts, ReadTexts
from migration import MigrationError
from storage.errors import StorageError

_NODES, _MORE, _FEWER = 4, 6, 3
_EVERY_MS = {"file": 500}  # between two batches; any other store is asked over a network, many times for every batch
_EVERY_MS_ELSEWHERE = 1_000
_WINDOW = 10  # batches
_MINING = Mining(threshold=20, window=f"{_WINDOW} batches")
_WARM_BATCHES = 12  # the window is full, and nothing is done for the first time any more


@click.command("demo")
@click.option("--texts", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="a CSV file, else invented")
@click.option(
    "--store", default="file", show_default=True, help="file, s3 for a MinIO of its own, or the URL of a store"
)
@click.option("--rate", default=600, show_default=True, type=click.IntRange(20, 20_000), help="texts a second")
@click.option("--every", "every_ms", type=click.IntRange(100, 60_000), help="milliseconds between two batches of texts")
@click.option(
    "--pause", default=10.0, show_default=True, type=click.FloatRange(1, 600), help="seconds between two acts"
)
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65_535), help="of API and page; 0 is any")
@click.option("--open", "browse", is_flag=True, help="show the page and the report in a browser")
@click.option("--stay", is_flag=True, help="go on after the last act, for you to scale, until Ctrl-C")
@click.option(
    "--output", default=Path("build/demo"), show_default=True, type=click.Path(file_okay=False, path_type=Path)
)
def command(
    texts: Path | None,
    store: str,
    rate: int,
    every_ms: int | None,
    pause: float,
    port: int,
    browse: bool,
    stay: bool,
    output: Path,
) -> None:
    """Mine frequent patterns while the job scales 4 -> 6 -> 3 and a node is killed; prove that every count is exact."""
    console = Console()
    every_ms = every_ms or _EVERY_MS.get(store, _EVERY_MS_ELSEWHERE)
    per_batch = max(1, rate * every_ms // 1_000)
    audit = Audit(MadeTexts() if texts is None else ReadTexts.of_csv(texts), per_batch, _MINING)
    diary = Diary(every=every_ms / 1_000)
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            with console.status(f"starting Spark and {_NODES} nodes inside its tasks ..."):
                place = stack.enter_context(opened(store))
                with errors_to(output / "spark.log"):
                    spark = stack.enter_context(quiet_spark(_MORE, "ERROR"))
                job = stack.enter_context(
                    patterns_job(
                        texts_of_numbers(clocked_numbers(spark, per_batch, every_ms), audit.texts),
                        store=place.url,
                        checkpoint=place.checkpoint,
                        name=place.job,
                        mining=_MINING,
                        nodes=_NODES,
                        sink=Board(diary.note),
                        trigger={"processingTime": "50 milliseconds"},
                    )
                )
            server = stack.enter_context(serve(job, port=port))
            stack.enter_context(announced(Connection(server.url, place.job, server.token)))
            _greet(console, server.url, rate, diary.every, place.url)
            if browse:
                webbrowser.open(server.url)
            _play(job, diary, console, pause)
            if stay:
                _wait(job, console, server.url)
            job.stop()
            proof = _proven(job, audit, diary, console)
    except (ElasticError, MigrationError, StorageError) as error:
        raise click.ClickException(str(error)) from error
    _conclude(console, diary, proof, output, browse)
    console.print(f"{time.monotonic() - began:.0f} s in all.", highlight=False)
    sys.exit(0 if proof.holds else 1)


def _play(job: elastic.Job, diary: Diary, console: Console, pause: float) -> None:
    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(30),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", style="dim"),
    )
    with Progress(*columns, console=console) as bars:
        acts = Acts(job, diary, bars)
        acts.warm_up(_WARM_BATCHES, lambda: start_of(job.stream))
        acts.steady(f"{_NODES} nodes", pause)
        acts.scale(_MORE)
        acts.steady(f"{_MORE} nodes", pause)
        acts.scale(_FEWER)
        acts.steady(f"{_FEWER} nodes", pause)
        acts.kill()
        acts.steady("afterwards", pause)


def _greet(console: Console, url: str, rate: int, every: float, store: str) -> None:
    console.print(
        f"{rate} texts a second, in batches; each counts until it leaves a window of {_WINDOW * every:g} s.\n"
        f"State is kept in {store.partition('?')[0]}\n"
        f"The live page: [bold]{url}[/bold]    or in another terminal: elastic watch",
        highlight=False,
    )


def _wait(job: elastic.Job, console: Console, url: str) -> None:
    console.print(f"It goes on: scale it at {url} or with `elastic scale --nodes 5`. Ctrl-C ends it.", highlight=False)
    try:
        while not job.await_termination(1.0):
            pass
    except KeyboardInterrupt:
        console.print("stopping ...")


def _proven(job: elastic.Job, audit: Audit, diary: Diary, console: Console) -> Proof:
    columns = (TextColumn("{task.description:<20}"), BarColumn(30), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        bar = bars.add_task("proving every batch", total=len(diary.changes))
        return prove(job, audit, diary.changes, lambda done: bars.update(bar, completed=done))


def _conclude(console: Console, diary: Diary, proof: Proof, output: Path, browse: bool) -> None:
    output.mkdir(parents=True, exist_ok=True)
    picture = draw(diary, output / "demo.png")
    page = report.write(diary, proof, picture, output / "report.html")
    console.print(report.table(diary))
    console.print(str(proof), style="bold green" if proof.holds else "bold red", highlight=False)
    console.print(f"picture: {picture}\nreport:  {page}", highlight=False)
    if browse:
        webbrowser.open(page.absolute().as_uri())
