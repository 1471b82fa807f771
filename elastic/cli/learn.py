"""`elastic learn`: from logs, or from a job's journal, to a transition matrix."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from elastic.cli.connection import jobs_here
from elastic.cli.waiting import waiting
from mdp.errors import MdpError, MissingPackage
from mdp.learning import HourlyMatrices, Recipe, draw, learn, learn_from, learn_hourly, learn_hourly_from, save
from mdp.learning.journal import read_journal
from mdp.learning.reading import files_at, read_log
from mdp.learning.recipe import COMBINATIONS, DUPLICATES, GAPS, REPEATS, ROUNDINGS
from mdp.learning.rendering import hours_table, summary, table
from mdp.matrix import TransitionMatrix
from storage.errors import StorageError

_Command = TypeVar("_Command", bound=Callable[..., Any])
Learned = TransitionMatrix | HourlyMatrices

# Beyond it Spark: one process would need some 100 bytes of memory a record, four times the size of a usual file.
SPARK_FROM_BYTES = 512 * 1024 * 1024
# What says how a log is read and turned into node counts: a journal already holds migrations.
_FOR_LOGS_ALONE = (
    *("time_column", "load_column", "nodes_column", "window_seconds", "combine", "quantiles", "rounding"),
    *("hysteresis", "gaps", "duplicates", "asked", "master"),
)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class Duration(click.ParamType[float]):
    """Seconds, or a number with a unit: 90s, 15m, 1h, 1d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", str(value))
        if found is None:
            self.fail(f"{value!r} is no duration. Write 3600, 90s, 15m, 1h or 1d.", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Sources:
    """Where the log is, as the command line names it."""

    inputs: tuple[str, ...]
    journal: str | None
    job: str | None
    time_column: str
    load_column: str | None
    nodes_column: str | None

    def __post_init__(self) -> None:
        if bool(self.inputs) == (self.journal is not None):
            raise click.UsageError("Give log files with --input, or a store with --journal.")
        if (self.journal is None) != (self.job is None):
            raise click.UsageError("--journal and --job go together: the store, and the name of the job.")

    def wants_spark(self, asked: bool | None, master: str | None) -> bool:
        """As asked; else with a master, or for files that are large or not on this machine, if Spark is here."""
        if asked is not None:
            return asked
        if master is not None or any("://" in path for path in self.inputs):
            return True
        size = sum(file.stat().st_size for path in self.inputs for file in files_at(Path(path)))
        return size >= SPARK_FROM_BYTES and find_spec("pyspark") is not None


def _choice(name: str, known: Mapping[str, str], **settings: Any) -> Callable[[_Command], _Command]:
    meanings = "; ".join(f"{choice}: {meaning}" for choice, meaning in known.items())
    return click.option(name, type=click.Choice(list(known)), help=meanings, **settings)


@click.command("learn")
@click.option("--input", "inputs", multiple=True, help="A CSV or Parquet file, or a folder of such; repeatable.")
@click.option("--journal", metavar="STORE_URL", help="Learn from the journal of a job in this store.")
@click.option("--job", metavar="NAME", shell_complete=jobs_here, help="The name of that job.")
@click.option("--time-column", default="timestamp", show_default=True)
@click.option("--load-column", help="The column of loads; `value` if --nodes-column is not given either.")
@click.option("--nodes-column", help="The column of node counts.")
@click.option("--range", "low_high", nargs=2, type=int, metavar="LOW HIGH", help="Node counts; loads need it.")
@click.option("--window", "window_seconds", type=Duration(), help="3600, 15m, 1h, 1d; an hour for loads.")
@_choice("--combine", COMBINATIONS, default=None)
@click.option("--quantiles", nargs=2, type=float, default=(0.0, 1.0), help="Loads beyond these are clipped.")
@_choice("--rounding", ROUNDINGS, default="nearest", show_default=True)
@click.option("--hysteresis", default=0.0, help="Nodes by which a load must leave the band of the current count.")
@_choice("--gaps", GAPS, default="error", show_default=True)
@_choice("--duplicates", DUPLICATES, default="error", show_default=True)
@_choice("--repeats", REPEATS, default=None)
@click.option("--smoothing", default=0.0, help="Observations that the prior counts in rows that were seen.")
@click.option("--hourly", is_flag=True, help="Also a matrix for every hour of the day.")
@click.option("--output", help="Save it here: a path, or a store's URL, a slash and a name.json.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw it here, as PNG.")
@click.option("--json", "as_json", is_flag=True, help="Print the matrix as JSON and nothing else.")
@click.option("--spark/--no-spark", "asked", default=None, help="By default, for large or remote files only.")
@click.option("--master", help="A Spark master, such as local[2] or spark://host:7077; implies --spark.")
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
    picture: Path | None,
    as_json: bool,
    asked: bool | None,
    master: str | None,
    repeats: str | None,
    **choices: Any,
) -> None:
    """Learn which migrations are likely, from logs of load or node counts or from a job's journal."""
    if load_column is None and nodes_column is None:
        load_column = "value"
    sources = Sources(inputs, journal, job, time_column, load_column, nodes_column)
    if journal is not None:
        _refuse_what_is_for_logs(click.get_current_context())
    low, high = low_high or (None, None)
    try:
        recipe = Recipe(low, high, repeats=repeats or ("rebalance" if journal else "ignore"), **choices)
        with waiting("learning", quiet=as_json) as say:
            learned = _learned(sources, recipe, hourly, asked, master, say)
            if output is not None:
                say(f"saving at {output}")
                save(learned, output)
            if picture is not None:
                say(f"drawing {picture}")
                draw(learned, picture)
    except (MdpError, StorageError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(json.dumps(learned.to_dict()) if as_json else _shown(learned, output, picture))


def _refuse_what_is_for_logs(ctx: click.Context) -> None:
    given = [
        option.opts[0]
        for option in ctx.command.params
        if option.name in _FOR_LOGS_ALONE and ctx.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(
            f"{', '.join(given)}: for logs alone, and a journal already holds migrations. Leave it out with --journal."
        )


def _learned(
    sources: Sources, recipe: Recipe, hourly: bool, asked: bool | None, master: str | None, say: Callable[[str], None]
) -> Learned:
    if sources.journal is not None and sources.job is not None:
        say(f"reading the journal of {sources.job}")
        counts = read_journal(sources.journal, sources.job)
        make = learn_hourly if hourly else learn
        return make(counts, recipe.low, recipe.high, repeats=recipe.repeats, smoothing=recipe.smoothing)
    if sources.wants_spark(asked, master):
        return _learned_on_spark(sources, recipe, hourly, master or "local[*]", say)
    say(f"reading {', '.join(sources.inputs)}")
    log = read_log(
        sources.inputs,
        time_column=sources.time_column,
        load_column=sources.load_column,
        nodes_column=sources.nodes_column,
    )
    say(f"learning from {len(log):,} records")
    return learn_hourly_from(log, recipe) if hourly else learn_from(log, recipe)


def _learned_on_spark(
    sources: Sources, recipe: Recipe, hourly: bool, master: str, say: Callable[[str], None]
) -> Learned:
    if find_spec("pyspark") is None:
        raise MissingPackage("learning on Spark", "pyspark", "spark")
    say(f"starting Spark at {master}")
    # Imported late: they bring Spark with them.
    from mdp.spark.learning import SparkLearner
    from mdp.spark.session import session

    spark = session("elastic learn", master)
    try:
        say(f"learning on Spark at {master}")
        columns = sources.time_column, sources.load_column, sources.nodes_column
        learner = SparkLearner(spark, sources.inputs, recipe, *columns)
        return learner.hourly() if hourly else learner.matrix()
    finally:
        spark.stop()


def _shown(learned: Learned, output: str | None, picture: Path | None) -> str:
    overall = learned.overall if isinstance(learned, HourlyMatrices) else learned
    parts = [table(overall), summary(overall)]
    if isinstance(learned, HourlyMatrices):
        parts.append(hours_table(learned))
    places = [f"{what} {place}" for what, place in (("saved at", output), ("picture:", picture)) if place is not None]
    return "\n\n".join([*parts, *places])
