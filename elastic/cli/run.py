"""`elastic run`: an operator from a module, a source, a store; with the API and the page beside it."""

import inspect
import json
import signal
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elastic.cli.connection import TOKEN, Connection, announced
from elastic.cli.group import with_this_folder
from elastic.cli.logs import log_shown
from elastic.cli.run_arguments import job_arguments, source_options, spark_conf
from elastic.cli.waiting import waiting
from elastic.errors import ElasticError
from migration import MigrationError
from storage.errors import StorageError

if TYPE_CHECKING:
    from elastic.operators import Operator, Stage

    Pipeline = list[Operator | Stage]

_LOOK_SECONDS = 0.5
_SENTENCES = {
    "running": "{name} runs. Page and API: {url}; try `elastic watch --job {name}`. Ctrl-C ends it.",
    "stopped": "{name} was stopped; run it again, and it goes on from here.",
    "done": "{name} has done all that was there; run it again, and it goes on from here.",
    "ended": "{name} ended; run it again, and it goes on from here.",
}


class Pair(click.ParamType[tuple[str, str]]):
    """name=value"""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"expected NAME=VALUE, got {name!r}.", param, ctx)
        return name, text


@click.command("run")
@click.argument("operator", metavar="MODULE:OPERATOR")
@click.option("--name", required=True, help="Of the job; the same name goes on where it was.")
@click.option("--store", required=True, metavar="URL", help="Where its state goes: file:///folder, s3://bucket/prefix.")
@click.option("--key", "keys", required=True, multiple=True, metavar="COLUMN", help="Repeatable.")
@click.option("--source", default="text", show_default=True, help="A format of spark.readStream.")
@click.option("--path", help="What to load, for sources that have a path.")
@click.option(
    "--option", "options", multiple=True, type=Pair(), help="An option of the source, or NAME=@FILE; repeatable."
)
@click.option("--schema", help="Of the source, as Spark's DDL: 'word string, n long'.")
@click.option("--select", "columns", multiple=True, metavar="SQL", help="Columns made from the source's; repeatable.")
@click.option("--nodes", default=4, show_default=True, type=click.IntRange(1))
@click.option("--tasks", default=64, show_default=True, type=click.IntRange(1))
@click.option("--event-time", metavar="COLUMN", help="The column with the time of each row.")
@click.option("--watermark", metavar="DELAY", help="How late rows may be, as '10 seconds'; with --event-time.")
@click.option("--trigger", default="500 milliseconds", show_default=True, help="Between two batches.")
@click.option("--sink", default="store", show_default=True, help="As `elastic.run` takes it.")
@click.option("--set", "settings", multiple=True, type=Pair(), help="A setting of the job; repeatable.")
@click.option("--secret-file", type=click.Path(path_type=Path), help="A file with the secret; else ELASTIC_SECRET.")
@click.option(
    "--checkpoint", metavar="FOLDER", help="Where Spark keeps its offsets; needed unless the store is a folder."
)
@click.option("--master", help="A Spark master; local, with room to scale out, if not given.")
@click.option("--conf", "conf", multiple=True, type=Pair(), help="A key of Spark's configuration; repeatable.")
@click.option("--packages", metavar="MAVEN", help="Packages that Spark fetches, as group:artifact:version,...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the API and the page listen.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65_535), help="0 is any free one.")
@click.option("--api-token", envvar=TOKEN, help=f"Or {TOKEN}; made up if not given, needed beyond loopback.")
@click.option("--once", is_flag=True, help="Stop when all that is there now is done.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON when it runs and when it ended.")
def command(
    operator: str,
    name: str,
    store: str,
    keys: tuple[str, ...],
    host: str,
    port: int,
    api_token: str | None,
    once: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Run an operator on a stream until Ctrl-C; MODULE:OPERATOR is a class, or a function that gives one or several."""
    # Imported late: it brings the control plane, and that the planner with its compiler.
    from elastic.api import serve

    try:
        with ExitStack() as stack:
            # Whoever asks it to end ends it as gently as Ctrl-C.
            stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.default_int_handler))
            stack.enter_context(log_shown())
            found = made(operator)
            with waiting(f"starting Spark and {how['nodes']} nodes", quiet=as_json):
                job = stack.enter_context(_job(found, name, store, keys, **how))
                server = stack.enter_context(serve(job, host, port, api_token))
            stack.enter_context(announced(Connection(server.url, name, server.token)))
            _say("running", as_json, name=name, url=server.url)
            outcome = _lived(job, once)
            with waiting(f"stopping {name}", quiet=as_json):
                stack.close()
    except KeyboardInterrupt:
        outcome = "stopped"
    except (ElasticError, MigrationError, StorageError) as error:
        raise click.ClickException(str(error)) from error
    _say(outcome, as_json, name=name)


def _lived(job: Any, once: bool) -> str:
    """How the job's life in this process came to its end."""
    try:
        if once:
            job.process_all_available()
            return "done"
        while not job.await_termination(_LOOK_SECONDS):
            pass
    except KeyboardInterrupt:
        return "stopped"
    return "ended"


def _say(event: str, as_json: bool, **facts: str) -> None:
    click.echo(json.dumps({"event": event, **facts}) if as_json else _SENTENCES[event].format(**facts))


def made(text: str) -> "Pipeline":
    """The operator, or the operators in their order, that MODULE:NAME speaks of; modules in this folder count too."""
    # Imported late: it brings the compiler with it.
    from elastic.operators import Operator, Stage

    module, colon, attribute = text.partition(":")
    if not colon or not attribute:
        raise click.BadParameter(f"{text!r} is no MODULE:OPERATOR, such as elastic.operators:CountByKey.")
    with_this_folder()
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as missing:
        raise click.BadParameter(f"there is no {text}: {missing}. Check the name, or run it where it is.") from missing
    operator = _called(text, found) if inspect.isclass(found) or inspect.isfunction(found) else found
    several = list(operator) if isinstance(operator, list | tuple) else [operator]
    if not several or not all(isinstance(one, Operator | Stage) for one in several):
        raise click.BadParameter(f"{text} gives {type(operator).__name__}, and no operator. Derive it from Operator.")
    return several


def _called(text: str, make: Callable[..., Any]) -> Any:
    try:
        inspect.signature(make).bind()
    except TypeError as cause:
        raise click.BadParameter(f"{text} has {cause}. Name a function that gives an operator by itself.") from cause
    return make()


def _job(
    operator: "Pipeline",
    name: str,
    store: str,
    keys: tuple[str, ...],
    *,
    source: str,
    path: str | None,
    options: tuple[tuple[str, str], ...],
    schema: str | None,
    columns: tuple[str, ...],
    nodes: int,
    tasks: int,
    trigger: str,
    sink: str,
    settings: tuple[tuple[str, str], ...],
    secret_file: Path | None,
    event_time: str | None,
    watermark: str | None,
    checkpoint: str | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    packages: str | None,
) -> Any:
    more = job_arguments(store, settings, secret_file, event_time, watermark, checkpoint)
    read_options, configured = source_options(options), spark_conf(conf, packages)
    # Imported late: they bring Spark with them, and what is wrong with the arguments is told before.
    import elastic
    from elastic.runtime.session import cluster_session, local_session

    spark = local_session(nodes, conf=configured) if master is None else cluster_session(master, conf=configured)
    spark.sparkContext.setLogLevel("ERROR")
    reader = spark.readStream.format(source).options(**read_options)
    frame = (reader if schema is None else reader.schema(schema)).load(path)
    return elastic.run(
        frame.selectExpr(*columns) if columns else frame,
        key=list(keys),
        operator=operator,
        name=name,
        store=store,
        nodes=nodes,
        tasks=tasks,
        sink=sink,
        trigger={"processingTime": trigger},
        **more,
    )
