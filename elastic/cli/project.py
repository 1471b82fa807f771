"""`elastic project`: a value table in the store, from a workload and a transition matrix."""

import json
import os
from pathlib import Path
from typing import Any

import click

from elastic.cli.connection import complete_jobs
from elastic.cli.options import ERROR, GAMMA, MAX_PARTITIONS, METHODS
from elastic.cli.terminal import show_spinner
from elastic.control.request import ScaleRequest
from elastic.errors import ElasticError
from elastic.secret import application_secret
from mdp.errors import MdpError
from mdp.learning.journal import newest_workload
from mdp.learning.matrix_files import load_matrix
from migration import MigrationError, Workload
from storage.errors import StorageError


@click.command("project")
@click.option("--matrix", required=True, metavar="LOCATION", help="Matrix that `elastic learn --output` saved.")
@click.option("--workload", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Workload as JSON.")
@click.option(
    "--job",
    metavar="NAME",
    shell_complete=complete_jobs,
    help="Use the newest workload in the journal of this job in the store.",
)
@click.option("--tasks", type=int, help="Number of tasks of equal work and state.")
@click.option("--tau", default=ScaleRequest.tau, show_default=True, help="Imbalance tolerance above the mean work.")
@click.option("--gamma", default=GAMMA, show_default=True, help="Discount factor of future migrations.")
@click.option("--store", required=True, metavar="URL", help="Store of the value table and of checkpoints.")
@click.option("--name", required=True, help="Name of the value table.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True, help="Method of computation.")
@click.option(
    "--error", default=ERROR, show_default=True, help="Error bound of exact values, as a fraction of total state size."
)
@click.option(
    "--max-partitions",
    "most_partitions",
    default=MAX_PARTITIONS,
    show_default=True,
    help="With more partitions, the method auto approximates.",
)
@click.option("--relax", is_flag=True, help="Use the smallest feasible cap for node counts that cannot be balanced.")
@click.option("--seed", default=0, show_default=True, help="Seed of the training.")
@click.option("--master", help="Spark master to compute on, such as local[2] or spark://host:7077.")
@click.option("--resume", is_flag=True, help="Resume an interrupted projection of this name from its checkpoint.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON, and no progress.")
def command(
    matrix: str,
    workload: Path | None,
    job: str | None,
    tasks: int | None,
    store: str,
    name: str,
    master: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compute the expected cost of future migrations, for plans with foresight (strategy mtm)."""
    # Imported here because they load the compiler.
    from elastic.cli.progress import ProjectionProgress
    from mdp.projection import CheckpointLocation, project

    try:
        secret = application_secret(None, os.environ)
        work = _read_workload(workload, job, tasks, store)
        spark = _create_session(master, quiet=as_json)
        checkpoint = CheckpointLocation(store, name, secret)
        with ProjectionProgress(quiet=as_json) as progress:
            table = project(work, load_matrix(matrix), spark=spark, checkpoint=checkpoint, report=progress, **options)
        key = table.save(store, name, secret=secret)
    except (MdpError, MigrationError, StorageError, ElasticError) as error:
        raise click.ClickException(str(error)) from error
    facts = {"kind": table.kind, "store": store, "key": key, **table.facts}
    click.echo(json.dumps(facts) if as_json else _format_summary(facts))


def _read_workload(path: Path | None, job: str | None, tasks: int | None, store: str) -> Workload:
    if sum(given is not None for given in (path, job, tasks)) != 1:
        raise click.UsageError("A workload is missing. Give one of --workload, --job and --tasks.")
    if path is not None:
        return Workload.from_json(path.read_text())
    if job is not None:
        return newest_workload(store, job)
    if tasks is None or tasks < 1:
        raise click.UsageError(f"--tasks must be at least 1, got {tasks}.")
    return Workload.uniform(tasks)


def _create_session(master: str | None, *, quiet: bool) -> Any:
    if master is None:
        return None
    with show_spinner(f"starting Spark at {master}", quiet=quiet):
        # Imported here because it loads Spark.
        from mdp.spark.session import get_session

        return get_session("elastic project", master)


def _format_summary(facts: dict[str, Any]) -> str:
    if facts["kind"] == "exact":
        result = f"exact values with errors below {facts['error']:.2%} of total state, after {facts['sweeps']} sweeps"
    else:
        result = f"approximate values; in simulation they move {facts['gain_over_ssm']:.1%} less state than ssm"
    return f"{result}\n{facts['why']}; {facts['seconds']:.1f} s\nsaved as {facts['key']} in {facts['store']}"
