"""`elastic learn`: a transition matrix from logs or from a job's journal."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from elastic.cli.connection import complete_jobs
from elastic.cli.options import Duration
from elastic.cli.terminal import show_spinner
from mdp.errors import MdpError, MissingPackage
from mdp.learning import (
    HourlyMatrices,
    Recipe,
    draw_matrix,
    learn,
    learn_from_log,
    learn_hourly,
    learn_hourly_from_log,
    save_matrix,
)
from mdp.learning.journal import read_journal
from mdp.learning.log_files import list_log_files, read_log
from mdp.learning.recipe import COMBINATIONS, DUPLICATES, GAPS, REPEATS, ROUNDINGS
from mdp.learning.rendering import format_hours, format_matrix, format_summary
from mdp.matrix import TransitionMatrix
from storage.errors import StorageError

_Command = TypeVar("_Command", bound=Callable[..., Any])
Learned = TransitionMatrix | HourlyMatrices

# Above this size Spark reads the log: one process needs about 100 bytes per record, four times the usual file size.
SPARK_FROM_BYTES = 512 * 1024 * 1024
# Options for reading a log and converting it into node counts; a journal contains node counts already.
_LOG_OPTIONS = (
    *("time_column", "load_column", "nodes_column", "window_seconds", "combine", "quantiles", "rounding"),
    *("hysteresis", "gaps", "duplicates", "use_spark", "master"),
)


@dataclass(frozen=True)
class Sources:
    """The log or journal to learn from, and its columns."""

    inputs: tuple[str, ...]
    journal: str | None
    job: str | None
    time_column: str
    load_column: str | None
    nodes_column: str | None

    def __post_init__(self) -> None:
        if bool(self.inputs) == (self.journal is not None):
            raise click.UsageError("Give either log files with --input or a store with --journal.")
        if (self.journal is None) != (self.job is None):
            raise click.UsageError("--journal needs --job, the name of the job in that store, and vice versa.")

    def needs_spark(self, use_spark: bool | None, master: str | None) -> bool:
        """Return the user's choice; by default, whether there is a master, or the files are remote or large."""
        if use_spark is not None:
            return use_spark
        if master is not None or any("://" in path for path in self.inputs):
            return True
        size = sum(file.stat().st_size for path in self.inputs for file in list_log_files(Path(path)))
        return size >= SPARK_FROM_BYTES and find_spec("pyspark") is not None


def _choice(name: str, known: Mapping[str, str], **settings: Any) -> Callable[[_Command], _Command]:
    meanings = "; ".join(f"{choice}: {meaning}" for choice, meaning in known.items())
    return click.option(name, type=click.Choice(list(known)), help=meanings, **settings)


@click.command("learn")
@click.option("--input", "inputs", multiple=True, help="CSV or Parquet file, or a folder of them; repeatable.")
@click.option("--journal", metavar="STORE_URL", help="Store with the journal of a job to learn from.")
@click.option("--job", metavar="NAME", shell_complete=complete_jobs, help="Name of the job, for --journal.")
@click.option("--time-column", default="timestamp", show_default=True, help="Column of timestamps.")
@click.option("--load-column", help="Column of loads; by default `value`, unless --nodes-column is given.")
@click.option("--nodes-column", help="Column of node counts.")
@click.option(
    "--range", "low_high", nargs=2, type=int, metavar="LOW HIGH", help="Range of node counts; required for loads."
)
@click.option(
    "--window",
    "window_seconds",
    type=Duration(),
    help="Window length, such as 3600, 15m, 1h or 1d; by default 1h for loads.",
)
@_choice("--combine", COMBINATIONS, default=None)
@click.option("--quantiles", nargs=2, type=float, default=(0.0, 1.0), help="Quantiles at which loads are clipped.")
@_choice("--rounding", ROUNDINGS, default="nearest", show_default=True)
@click.option(
    "--hysteresis", default=0.0, help="Nodes by which a load must exceed the range of the current count to change it."
)
@_choice("--gaps", GAPS, default="error", show_default=True)
@_choice("--duplicates", DUPLICATES, default="error", show_default=True)
@_choice("--repeats", REPEATS, default=None)
@click.option("--smoothing", default=0.0, help="Weight of the prior in observed rows, in observations.")
@click.option("--hourly", is_flag=True, help="Also learn a matrix for every hour of the day.")
@click.option("--output", help="Where to save the matrix: a path, or STORE_URL/NAME.json.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Where to save a plot of it, as PNG.")
@click.option("--json", "as_json", is_flag=True, help="Print the matrix as JSON and nothing else.")
@click.option(
    "--spark/--no-spark", "use_spark", default=None, help="Use Spark; by default for large or remote files only."
)
@click.option("--master", help="Spark master, such as local[2] or spark://host:7077; implies --spark.")
def command(
    inputs: tuple[str, ...],
    journal: str | None,
    job: str | None,
    time_column: str,
    load_column: str | None,
    nodes_column: str | None,
    low_high: tuple[int, int] | None,
    hourly: bool,
    output: str | None,
    plot: Path | None,
    as_json: bool,
    use_spark: bool | None,
    master: str | None,
    repeats: str | None,
    **choices: Any,
) -> None:
    """Learn the probabilities of migrations from logs of loads or node counts, or from a job's journal."""
    if load_column is None and nodes_column is None:
        load_column = "value"
    sources = Sources(inputs, journal, job, time_column, load_column, nodes_column)
    if journal is not None:
        _refuse_log_options(click.get_current_context())
    low, high = low_high or (None, None)
    try:
        recipe = Recipe(low, high, repeats=repeats or ("rebalance" if journal else "ignore"), **choices)
        with show_spinner("learning", quiet=as_json) as set_text:
            learned = _learn(sources, recipe, hourly, use_spark, master, set_text)
            if output is not None:
                set_text(f"saving {output}")
                save_matrix(learned, output)
            if plot is not None:
                set_text(f"plotting {plot}")
                draw_matrix(learned, plot)
    except (MdpError, StorageError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps(learned.to_dict()) if as_json else _format_result(learned, output, plot))


def _refuse_log_options(ctx: click.Context) -> None:
    given = [
        option.opts[0]
        for option in ctx.command.params
        if option.name in _LOG_OPTIONS and ctx.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(
            f"{', '.join(given)}: not allowed with --journal, which contains node counts. Use it with --input."
        )


def _learn(
    sources: Sources,
    recipe: Recipe,
    hourly: bool,
    use_spark: bool | None,
    master: str | None,
    set_text: Callable[[str], None],
) -> Learned:
    if sources.journal is not None and sources.job is not None:
        set_text(f"reading the journal of {sources.job}")
        counts = read_journal(sources.journal, sources.job)
        learn_counts = learn_hourly if hourly else learn
        return learn_counts(counts, recipe.low, recipe.high, repeats=recipe.repeats, smoothing=recipe.smoothing)
    if sources.needs_spark(use_spark, master):
        return _learn_on_spark(sources, recipe, hourly, master or "local[*]", set_text)
    set_text(f"reading {', '.join(sources.inputs)}")
    log = read_log(
        sources.inputs,
        time_column=sources.time_column,
        load_column=sources.load_column,
        nodes_column=sources.nodes_column,
    )
    set_text(f"learning from {len(log):,} records")
    return learn_hourly_from_log(log, recipe) if hourly else learn_from_log(log, recipe)


def _learn_on_spark(
    sources: Sources, recipe: Recipe, hourly: bool, master: str, set_text: Callable[[str], None]
) -> Learned:
    if find_spec("pyspark") is None:
        raise MissingPackage("learning on Spark", "pyspark", "spark")
    set_text(f"starting Spark at {master}")
    # Imported here because they load Spark.
    from mdp.spark.learning import SparkLearner
    from mdp.spark.session import get_session

    spark = get_session("elastic learn", master)
    try:
        set_text(f"learning on Spark at {master}")
        columns = sources.time_column, sources.load_column, sources.nodes_column
        learner = SparkLearner(spark, sources.inputs, recipe, *columns)
        return learner.hourly() if hourly else learner.matrix()
    finally:
        spark.stop()


def _format_result(learned: Learned, output: str | None, plot: Path | None) -> str:
    overall = learned.overall if isinstance(learned, HourlyMatrices) else learned
    parts = [format_matrix(overall), format_summary(overall)]
    if isinstance(learned, HourlyMatrices):
        parts.append(format_hours(learned))
    files = [f"{what} {file}" for what, file in (("saved:", output), ("plot:", plot)) if file is not None]
    return "\n\n".join([*parts, *files])
