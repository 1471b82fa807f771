"""The whole demo: start a job, scale it and kill a node, verify every result, write a report."""

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
from elastic.cli.connection import Connection, announce
from examples.demo import report
from examples.demo.memory import find_free_mb
from examples.demo.picture import draw
from examples.demo.proof import Proof, prove
from examples.demo.source import find_start, stream_clocked_numbers
from examples.demo.stderr import redirect_stderr
from examples.demo.steps import DemoSteps
from examples.demo.stores import StoreLocation, open_location
from examples.demo.timeline import Timeline
from examples.frequent_patterns.audit import Audit
from examples.frequent_patterns.board import Board
from examples.frequent_patterns.job import patterns_job
from examples.frequent_patterns.local_spark import quiet_spark
from examples.frequent_patterns.mining import Mining
from examples.frequent_patterns.sources import take_texts
from examples.frequent_patterns.texts import CsvTexts, GeneratedTexts

_NODES, _MORE, _FEWER = 4, 6, 3
_EVERY_MS = {"file": 500}  # between two batches; other stores are slower, with many requests per batch over a network
_EVERY_MS_ELSEWHERE = 1_000
_WINDOW = 10  # batches
MINING = Mining(threshold=20, window=f"{_WINDOW} batches")
_WARM_BATCHES = 12  # the window is full, and all code is warm
_STANDBYS_MB = 3_000  # Spark, six nodes and the proof take 2 GB; with less than this, standbys might be too much
_BAR = (TextColumn("{task.description:<20}"), BarColumn(30), TimeElapsedColumn())


@dataclass
class Demo:
    """One demo with the options of the command line."""

    texts: Path | None
    store: str
    rate: int
    every_ms: int | None
    pause: float
    port: int
    browse: bool
    stay: bool
    standbys: int | None
    output: Path
    console: Console = field(default_factory=Console)

    def __post_init__(self) -> None:
        self._free_mb = find_free_mb()
        if self.standbys is None:
            self.standbys = int(self._free_mb >= _STANDBYS_MB)
        self.every_ms = self.every_ms or _EVERY_MS.get(self.store, _EVERY_MS_ELSEWHERE)
        texts = GeneratedTexts() if self.texts is None else CsvTexts.read(self.texts)
        self._audit = Audit(texts, max(1, self.rate * self.every_ms // 1_000), MINING)
        self._timeline = Timeline(every=self.every_ms / 1_000)

    def run(self) -> Proof:
        began = time.monotonic()
        with ExitStack() as stack:
            with self.console.status(f"starting Spark and {_NODES} nodes inside its tasks ..."):
                place = stack.enter_context(open_location(self.store))
                with redirect_stderr(self.output / "spark.log"):
                    spark = stack.enter_context(quiet_spark(_MORE))
                job = stack.enter_context(self._job(spark, place))
            server = stack.enter_context(serve(job, port=self.port))
            stack.enter_context(announce(Connection(server.url, place.job, server.token)))
            self._print_introduction(server.url, place.url)
            self._run_steps(job)
            if self.stay:
                self._wait_for_user(job, server.url)
            job.stop()
            proof = self._verify(job)
        self._write_report(proof)
        self.console.print(f"Finished in {time.monotonic() - began:.0f} s.", highlight=False)
        return proof

    def _job(self, spark: SparkSession, place: StoreLocation) -> elastic.SparkJob:
        numbers = stream_clocked_numbers(spark, self._audit.per_batch, round(self._timeline.every * 1_000))
        return patterns_job(
            take_texts(numbers, self._audit.texts),
            store=place.url,
            checkpoint=place.checkpoint,
            name=place.job,
            mining=MINING,
            nodes=_NODES,
            standbys=self.standbys,
            sink=Board(self._timeline.note),
            trigger={"processingTime": "50 milliseconds"},  # latency of noticing new texts
            empty_batches="off",  # the window is one of batches, and the proof knows the texts of each
        )

    def _print_introduction(self, url: str, store: str) -> None:
        window = _WINDOW * self._timeline.every
        self.console.print(
            f"{self.rate} texts per second in batches, over a window of {window:g} s.\n"
            f"State store: {store.partition('?')[0]}\n"
            f"Standbys: {self.standbys} of each task ({self._free_mb / 1_000:.1f} GB of memory are available)\n"
            f"Dashboard: [bold]{url}[/bold]    or in another terminal: elastic watch",
            highlight=False,
        )
        if self.browse:
            webbrowser.open(url)

    def _run_steps(self, job: elastic.SparkJob) -> None:
        with Progress(*_BAR, TextColumn("{task.fields[note]}", style="dim"), console=self.console) as bars:
            steps = DemoSteps(job, self._timeline, bars)
            steps.warm_up(_WARM_BATCHES, lambda: find_start(job.stream))
            steps.steady(f"{_NODES} nodes", self.pause)
            steps.scale(_MORE)
            steps.steady(f"{_MORE} nodes", self.pause)
            steps.scale(_FEWER)
            steps.steady(f"{_FEWER} nodes", self.pause)
            steps.kill()
            steps.steady("afterwards", self.pause)
            if self.standbys:
                steps.switch_back()
                steps.steady("as before", self.pause)

    def _wait_for_user(self, job: elastic.SparkJob, url: str) -> None:
        self.console.print(
            f"The job keeps running: scale it at {url} or with `elastic scale --nodes 5`. Ctrl-C stops it.",
            highlight=False,
        )
        try:
            while not job.await_termination(1.0):
                pass
        except KeyboardInterrupt:
            self.console.print("stopping ...")

    def _verify(self, job: elastic.SparkJob) -> Proof:
        with Progress(*_BAR, console=self.console) as bars:
            bar = bars.add_task("verifying every batch", total=len(self._timeline.changes))
            return prove(job, self._audit, self._timeline.changes, lambda done: bars.update(bar, completed=done))

    def _write_report(self, proof: Proof) -> None:
        picture = draw(self._timeline, self.output / "demo.png")
        page = report.write(self._timeline, proof, picture, self.output / "report.html")
        self.console.print(report.to_table(self._timeline))
        self.console.print(str(proof), style="bold green" if proof.holds else "bold red", highlight=False)
        self.console.print(f"picture: {picture}\nreport:  {page}", highlight=False)
        if self.browse:
            webbrowser.open(page.absolute().as_uri())
