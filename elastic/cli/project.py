"""`elastic project`: from a workload and a transition matrix to a value table in the store."""

import json
import os
from pathlib import Path
from typing import Any

import click

from elastic.cli.connection import jobs_here
from elastic.cli.known import ERROR, GAMMA, METHODS, MOST_PARTITIONS, TAU
from elastic.cli.waiting import waiting
from elastic.errors import ElasticError
from elastic.secret import application_secret
from mdp.errors import MdpError
from mdp.learning.journal import newest_workload
from mdp.learning.saving import load as load_matrix
from migration import MigrationError, Workload
from storage.errors import StorageError


@click.command("project")
@click.option("--matrix", required=True, metavar="PLACE", help="Where `elastic learn --output` saved the matrix.")
@click.option("--workload", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="As `to_json` wrote it.")
@click.option(
    "--job",
    metavar="NAME",
    shell_complete=jobs_here,
    help="Take the newest workload from the journal of this job in the store.",
)
@click.option("--tasks", type=int, help="So many tasks, all alike.")
@click.option("--tau", default=TAU, show_default=True, help="What a node may carry above the mean.")
@click.option("--gamma", default=GAMMA, show_default=True, help="How much the next migration counts.")
@click.option("--store", required=True, metavar="URL", help="Where the table goes, and checkpoints on the way to it.")
@click.option("--name", required=True, help="The name of the table there.")
@click.option("--method", type=click.Choice(METHODS), default="auto", show_default=True)
@click.option("--error", default=ERROR, show_default=True, help="What exact values may be off by, of all state.")
@click.option("--most-partitions", default=MOST_PARTITIONS, show_default=True, help="Beyond, approximate.")
@click.option("--relax", is_flag=True, help="The smallest feasible cap for node counts that cannot be balanced.")
@click.option("--seed", default=0, show_default=True)
@click.option("--master", help="Compute on this Spark master, such as local[2] or spark://host:7077.")
@click.option("--resume", is_flag=True, help="Go on where the last projection of this name was killed.")
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON, and no progress.")
def command(
    matrix: str,
    workload: Path | None,
    job: str | None,
    tasks: int | None,
    store: str,
    name: str,
    master: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Compute what migrations will cost in the long run, for plans with foresight (strategy mtm)."""
    # Imported late: they bring the compiler with them.
    from elastic.cli.progress import ProjectionProgress
    from mdp.projecting import Place, project

    try:
        secret = application_secret(None, os.environ)
        work = _workload(workload, job, tasks, store)
        spark = _session(master, quiet=as_json)
        place = Place(store, name, secret)
        with ProjectionProgress(quiet=as_json) as progress:
            table = project(work, load_matrix(matrix), spark=spark, place=place, report=progress, **how)
        key = table.save(store, name, secret=secret)
    except (MdpError, MigrationError, StorageError, ElasticError) as error:
        raise click.ClickException(str(error)) from error
    facts = {"kind": table.kind, "store": store, "key": key, **table.facts}
    click.echo(json.dumps(facts) if as_json else _shown(facts))


def _workload(path: Path | None, job: str | None, tasks: int | None, store: str) -> Workload:
    if sum(given is not None for given in (path, job, tasks)) != 1:
        raise click.UsageError("Say which workload: one of --workload, --job and --tasks.")
    if path is not None:
        return Workload.from_json(path.read_text())
    if job is not None:
        return newest_workload(store, job)
    if tasks is None or tasks < 1:
        raise click.UsageError(f"--tasks {tasks} is no number of tasks. Give at least one.")
    return Workload.uniform(tasks)


def _session(master: str | None, *, quiet: bool) -> Any:
    if master is None:
        return None
    with waiting(f"starting Spark at {master}", quiet=quiet):
        # Imported late: it brings Spark with it.
        from mdp.spark.session import session

        return session("elastic project", master)


def _shown(facts: dict[str, Any]) -> str:
    if facts["kind"] == "exact":
        made = f"exact values, none further off than {facts['error']:.2%} of all state, after {facts['sweeps']} sweeps"
    else:
        made = f"an additive value; it moves {facts['gain_over_ssm']:.1%} less state than ssm in simulation"
    return f"{made}\n{facts['why']}; {facts['seconds']:.1f} s\nsaved as {facts['key']} in {facts['store']}"
