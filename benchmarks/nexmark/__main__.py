"""Measures and compares; draws a chart. Takes about a quarter of an hour."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import matplotlib as mpl
from pyspark.sql import SparkSession

import elastic
from benchmarks.nexmark.answers import compare, compare_runs
from benchmarks.nexmark.engines import NODES, SPARK_SETTINGS, Run, run_ours, run_spark
from benchmarks.nexmark.event_files import EventFiles, write_events
from benchmarks.nexmark.spark_way import MISSING
from benchmarks.report import RESULTS, table
from examples.nexmark.queries import QUERIES

DEFAULT_SETTINGS = ("HDFS, 2",)
GOALS = {5: 3.0, 11: 3.0, 3: 2.0, 4: 2.0, 8: 2.0, 20: 2.0}  # times Spark's rows per second


@dataclass(frozen=True)
class Size:
    """The size of a run: all batches and those to warm up, rows of a batch, and rows per second of event time."""

    batches: int = 16
    warm_up: int = 6
    rows: int = 500_000
    per_second: int = 100_000


QUICK = Size(batches=4, warm_up=1, rows=20_000, per_second=10_000)


@dataclass(frozen=True)
class Line:
    """The figures of one query: rows per second, whether answers are those of Spark, and whether scaling keeps them."""

    ours: float
    answers: str
    scaled: float = 0.0
    scaled_answers: str = ""
    note: str = ""
    theirs: float = 0.0
    settings: str = ""

    @property
    def times(self) -> float:
        return self.ours / self.theirs if self.theirs else 0.0


def measure(spark: SparkSession, number: int, size: Size, settings: tuple[str, ...], *, scales: bool = True) -> Line:
    """Run a query on both engines, one after the other, on the same files."""
    with tempfile.TemporaryDirectory(prefix="bench-nexmark-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        files = write_events(
            folder / "events",
            QUERIES[number].inputs,
            batches=size.batches,
            rows=size.rows,
            per_second=size.per_second,
        )
        ours = run_ours(spark, number, files, folder / "ours", warm_up=size.warm_up, scales=False)
        theirs, best = _run_best(spark, number, files, folder, size, settings)
        known = None if theirs is None else theirs.results
        line = Line(
            ours.rows_per_second,
            compare(number, ours.results, known),
            theirs=0.0 if theirs is None else theirs.rows_per_second,
            settings=best,
        )
        if not scales:
            return line
        scaled = run_ours(spark, number, files, folder / "scaled", warm_up=size.warm_up, scales=True)
        return Line(
            **{
                **asdict(line),
                "scaled": scaled.rows_per_second,
                "scaled_answers": compare_runs(number, scaled.results, ours.results),
                "note": scaled.note,
            }
        )


def _run_best(
    spark: SparkSession, number: int, files: EventFiles, folder: Path, size: Size, settings: tuple[str, ...]
) -> tuple[Run | None, str]:
    """Return Spark's run with the settings that are the fastest for the query."""
    if number in MISSING:
        return None, ""
    runs = {}
    for place, name in enumerate(settings):
        part = folder / f"spark-{place}"
        runs[name] = run_spark(spark, number, files, part, SPARK_SETTINGS[name], warm_up=size.warm_up)
        click.echo(f"Q{number}: Spark with {name} partitions: {runs[name].rows_per_second:,.0f} rows/s")
    best = max(runs, key=lambda name: runs[name].rows_per_second)
    return runs[best], best


def format_lines(lines: Mapping[int, Line]) -> str:
    header = [
        "query",
        "rows/s",
        "scaled 2 -> 4 -> 3",
        "Spark",
        "state store, partitions",
        "times",
        "goal",
        "answers",
        "scaled",
    ]
    rows = []
    for number, line in sorted(lines.items()):
        goal = f"{GOALS[number]:g}" if number in GOALS else ""
        theirs = [f"{line.theirs:,.0f}", line.settings, f"{line.times:.2f}"] if line.theirs else ["-", "-", "-"]
        speeds = [f"{line.ours:,.0f}", f"{line.scaled:,.0f}" if line.scaled else "-"]
        rows.append(
            [f"{number}: {QUERIES[number].question}", *speeds, *theirs, goal, line.answers, line.scaled_answers]
        )
    return table(f"Nexmark, rows per second, {NODES} nodes or state partitions, durable", header, rows)


def draw_chart(lines: Mapping[int, Line]) -> Path:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(11, 4), layout="constrained")
    numbers = sorted(lines)
    bars = [
        ("spark-elastic", [lines[number].ours for number in numbers], "#4c72b0"),
        ("spark-elastic, scaled 2 -> 4 -> 3", [lines[number].scaled for number in numbers], "#8fb0dd"),
        ("Spark 4.3", [lines[number].theirs for number in numbers], "#dd8452"),
    ]
    for place, (label, speeds, colour) in enumerate(bars):
        shifted = [at + (place - 1) * 0.27 for at in range(len(numbers))]
        axes.bar(shifted, [speed / 1e6 for speed in speeds], 0.27, color=colour, label=label)
    axes.set_xticks(range(len(numbers)), [f"Q{number}" for number in numbers])
    axes.set(ylabel="million rows per second")
    axes.legend()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "nexmark.png"
    figure.savefig(path, dpi=120)
    return path


@click.command()
@click.option("--only", multiple=True, type=click.Choice([str(number) for number in QUERIES]), help="Repeatable.")
@click.option("--quick", is_flag=True, help="A few small batches: compares answers, measures nothing.")
@click.option(
    "--setting",
    "settings",
    multiple=True,
    type=click.Choice(list(SPARK_SETTINGS)),
    default=DEFAULT_SETTINGS,
    help="Spark's state store and number of partitions; the fastest of several is shown. Repeatable.",
)
@click.option("--scales/--no-scales", default=True, help="Also run every query while the job scales.")
@click.option("--batches", default=Size.batches, help="Batches of events.")
@click.option("--rows", default=Size.rows, help="Rows of a batch.")
@click.option("--keep", is_flag=True, help="Add to the results of the previous run.")
def main(
    only: tuple[str, ...], quick: bool, settings: tuple[str, ...], scales: bool, batches: int, rows: int, keep: bool
) -> None:
    """Compare the queries of Nexmark on this engine and on Spark's own streaming."""
    spark = elastic.local_session(NODES + 2, spark_driver_memory="4g", spark_sql_files_minPartitionNum="1")
    spark.sparkContext.setLogLevel("OFF")
    size = QUICK if quick else Size(batches=batches, rows=rows)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "nexmark.json"
    lines = read_lines(path) if keep else {}
    numbers = [int(number) for number in only] or list(QUERIES)
    if not quick:
        measure(spark, numbers[0], size, settings, scales=False)  # a JVM runs both engines faster after its first query
    for number in numbers:
        try:
            lines[number] = measure(spark, number, size, settings, scales=scales)
        except Exception as error:  # noqa: BLE001 - a query that fails must not cost the figures of the others
            click.echo(f"Q{number} failed: {type(error).__name__}: {error}"[:2_000], err=True)
            continue
        click.echo(f"Q{number}: {lines[number]}, {lines[number].times:.2f} times")
        path.write_text(json.dumps({number: asdict(line) for number, line in lines.items()}, indent=1))
    print(format_lines(lines), flush=True)
    for number, reason in MISSING.items():
        print(f"Q{number} has no equivalent in Spark: {reason}.")
    print(f"\nchart: {draw_chart(lines).relative_to(Path.cwd())}")


def read_lines(path: Path) -> dict[int, Line]:
    """Return the figures of the last time."""
    if not path.exists():
        return {}
    return {int(number): Line(**line) for number, line in json.loads(path.read_text()).items()}


if __name__ == "__main__":
    main()
