"""The demo from its first to its last word: start, play, prove, report."""

import time
import webbrowser
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import elastic
from elastic.api import serve
from elastic.cli.connection import Connection, announced
from examples.demo import report
from examples.demo.acts import Acts
from examples.demo.diary import Diary
from examples.demo.picture import draw
from examples.demo.proof import Proof, prove
from examples.demo.quiet import errors_to
from examples.demo.source import clocked_numbers, start_of
from examples.demo.stores import Place, opened
from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.board import Board
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.local import quiet_spark
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.sources import texts_of_numbers
from examples.frequent_patterns.texts import MadeTexts, ReadTexts

_NODES, _MORE, _FEWER = 4, 6, 3
_EVERY_MS = {"file": 500}  # between two batches; any other store is asked over a network, many times for every batch
_EVERY_MS_ELSEWHERE = 1_000
_WINDOW = 10  # batches
_MINING = Mining(threshold=20, window=f"{_WINDOW} batches")
_WARM_BATCHES = 12  # the window is full, and nothing is done for the first time any more
_BAR = (TextColumn("{task.description:<20}"), BarColumn(30), TimeElapsedColumn())


@dataclass
class Performance:
    """One demo, as it was asked for on the command line."""

    texts: Path | None
    store: str
    rate: int
    every_ms: int | None
    pause: float
    port: int
    browse: bool
    stay: bool
    output: Path
    console: Console = field(default_factory=Console)

    def __post_init__(self) -> None:
        self.every_ms = self.every_ms or _EVERY_MS.get(self.store, _EVERY_MS_ELSEWHERE)
        texts = MadeTexts() if self.texts is None else ReadTexts.of_csv(self.texts)
        self._audit = Audit(texts, max(1, self.rate * self.every_ms // 1_000), _MINING)
        self._diary = Diary(every=self.every_ms / 1_000)

    def perform(self) -> Proof:
        began = time.monotonic()
        with ExitStack() as stack:
            with self.console.status(f"starting Spark and {_NODES} nodes inside its tasks ..."):
                place = stack.enter_context(opened(self.store))
                with errors_to(self.output / "spark.log"):
                    spark = stack.enter_context(quiet_spark(_MORE))
                job = stack.enter_context(self._job(spark, place))
            server = stack.enter_context(serve(job, port=self.port))
            stack.enter_context(announced(Connection(server.url, place.job, server.token)))
            self._greet(server.url, place.url)
            self._play(job)
            if self.stay:
                self._wait(job, server.url)
            job.stop()
            proof = self._proven(job)
        self._conclude(proof)
        self.console.print(f"{time.monotonic() - began:.0f} s in all.", highlight=False)
        return proof

    def _job(self, spark: SparkSession, place: Place) -> elastic.Job:
        numbers = clocked_numbers(spark, self._audit.per_batch, round(self._diary.every * 1_000))
        return patterns_job(
            texts_of_numbers(numbers, self._audit.texts),
            store=place.url,
            checkpoint=place.checkpoint,
            name=place.job,
            mining=_MINING,
            nodes=_NODES,
            sink=Board(self._diary.note),
            trigger={"processingTime": "50 milliseconds"},  # how soon texts are noticed when their time has come
        )

    def _greet(self, url: str, store: str) -> None:
        window = _WINDOW * self._diary.every
        self.console.print(
            f"{self.rate} texts a second, in batches; each counts until it leaves a window of {window:g} s.\n"
            f"State is kept in {store.partition('?')[0]}\n"
            f"The live page: [bold]{url}[/bold]    or in another terminal: elastic watch",
            highlight=False,
        )
        if self.browse:
            webbrowser.open(url)

    def _play(self, job: elastic.Job) -> None:
        with Progress(*_BAR, TextColumn("{task.fields[note]}", style="dim"), console=self.console) as bars:
            acts = Acts(job, self._diary, bars)
            acts.warm_up(_WARM_BATCHES, lambda: start_of(job.stream))
            acts.steady(f"{_NODES} nodes", self.pause)
            acts.scale(_MORE)
            acts.steady(f"{_MORE} nodes", self.pause)
            acts.scale(_FEWER)
            acts.steady(f"{_FEWER} nodes", self.pause)
            acts.kill()
            acts.steady("afterwards", self.pause)

    def _wait(self, job: elastic.Job, url: str) -> None:
        self.console.print(
            f"It goes on: scale it at {url} or with `elastic scale --nodes 5`. Ctrl-C ends it.", highlight=False
        )
        try:
            while not job.await_termination(1.0):
                pass
        except KeyboardInterrupt:
            self.console.print("stopping ...")

    def _proven(self, job: elastic.Job) -> Proof:
        with Progress(*_BAR, console=self.console) as bars:
            bar = bars.add_task("proving every batch", total=len(self._diary.changes))
            return prove(job, self._audit, self._diary.changes, lambda done: bars.update(bar, completed=done))

    def _conclude(self, proof: Proof) -> None:
        picture = draw(self._diary, self.output / "demo.png")
        page = report.write(self._diary, proof, picture, self.output / "report.html")
        self.console.print(report.table(self._diary))
        self.console.print(str(proof), style="bold green" if proof.holds else "bold red", highlight=False)
        self.console.print(f"picture: {picture}\nreport:  {page}", highlight=False)
        if self.browse:
            webbrowser.open(page.absolute().as_uri())
