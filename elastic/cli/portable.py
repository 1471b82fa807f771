"""`elastic export`, `elastic import` and `elastic resign`: state that outlives its job, its store and its secret."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from elastic.cli.group import add_working_folder_to_path
from elastic.cli.options import JSON_OPTION
from elastic.cli.terminal import show_spinner
from elastic.errors import ElasticError, MissingSecret
from elastic.secret import application_secret, read_secret_file
from storage.errors import StorageError

NEW_SECRET = "ELASTIC_NEW_SECRET"  # noqa: S105 - the name of a variable

_STORE = click.option("--store", required=True, metavar="URL", help="Store of the job's state.")
_SECRET_FILE = click.option(
    "--secret-file", type=click.Path(path_type=Path), help="File with the secret; by default ELASTIC_SECRET."
)


@click.command("export")
@click.argument("name")
@click.argument("directory", type=click.Path(path_type=Path))
@_STORE
@_SECRET_FILE
@JSON_OPTION
def export_command(name: str, directory: Path, store: str, secret_file: Path | None, as_json: bool) -> None:
    """Write the state of job NAME as of its last complete batch into the new folder DIRECTORY, as Parquet files."""
    # Imported here because it loads the compiler.
    from elastic.portable import export_state

    add_working_folder_to_path()  # the job's operator may come from there
    with show_spinner(f"exporting {name}", quiet=as_json):
        done = _call(export_state, name, directory, store=store, secret=_read(secret_file))
    if as_json:
        click.echo(json.dumps({"name": name, "directory": str(directory), **done._asdict()}))
        return
    counted = ", ".join(f"{rows} of {stage}" for stage, rows in done.rows.items())
    click.echo(f"{directory} has the state of {name} as of batch {done.batch}. Rows: {counted}.")


@click.command("import")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", required=True, help="Name of the new job.")
@_STORE
@click.option("--tasks", type=int, help="Number of tasks of the new job; by default that of the exported one, or 64.")
@click.option("--key-types", metavar="DDL", help="Other types of key columns, such as 'customer long'.")
@click.option("--operator", metavar="MODULE:OPERATOR", help="Operator of the job, for Parquet files of your own.")
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="Key column, with --operator; repeatable.")
@click.option("--schema", metavar="DDL", help="Schema of the job's rows, with --operator.")
@click.option("--stage", help="Stage that gets the rows, with --operator; by default the first one.")
@_SECRET_FILE
@JSON_OPTION
def import_command(
    directory: Path,
    name: str,
    store: str,
    tasks: int | None,
    key_types: str | None,
    operator: str | None,
    keys: tuple[str, ...],
    schema: str | None,
    stage: str | None,
    secret_file: Path | None,
    as_json: bool,
) -> None:
    """Let a new job begin with the state in DIRECTORY: an export, or Parquet files with key and value columns."""
    from elastic.cli.run import load_operators
    from elastic.portable import import_state

    with show_spinner(f"importing {name}", quiet=as_json):
        done = _call(
            import_state,
            directory,
            name=name,
            store=store,
            tasks=tasks,
            key_types=key_types,
            operator=None if operator is None else load_operators(operator),
            key=list(keys),
            schema=schema,
            stage=stage,
            secret=_read(secret_file),
        )
    if as_json:
        click.echo(json.dumps({"name": name, **done._asdict()}))
        return
    counted = ", ".join(f"{rows} of {stage}" for stage, rows in done.rows.items())
    click.echo(f"{name} begins with {done.tasks} tasks and the imported state. Rows: {counted}. Start it with run.")


@click.command("resign")
@click.argument("name")
@_STORE
@_SECRET_FILE
@click.option(
    "--new-secret-file", type=click.Path(path_type=Path), help=f"File with the new secret; by default {NEW_SECRET}."
)
@click.option("--fence", is_flag=True, help="Take over a job whose driver was killed; a running one ends.")
@JSON_OPTION
def resign_command(
    name: str, store: str, secret_file: Path | None, new_secret_file: Path | None, fence: bool, as_json: bool
) -> None:
    """Sign everything that the stopped job NAME needs with a new secret; safe to repeat."""
    from elastic.portable import resign

    with show_spinner(f"signing {name} anew", quiet=as_json):
        old = _call(application_secret, _read(secret_file), os.environ).reveal()
        new = _read(new_secret_file) or os.environ.get(NEW_SECRET)
        if not new:
            error = MissingSecret(NEW_SECRET, "it is not set, and there is no --new-secret-file")
            raise click.ClickException(str(error).replace("Set ELASTIC_SECRET", f"Set {NEW_SECRET}"))
        done = _call(resign, name, store=store, old_secret=old, new_secret=new, fence=fence)
    if as_json:
        click.echo(json.dumps({"name": name, **done._asdict()}))
        return
    click.echo(
        f"{name} is signed with the new secret: {done.signed} objects. {done.deleted} objects that are not needed were "
        "deleted. Use the new secret from now on."
    )


def _read(path: Path | None) -> str | None:
    return None if path is None else _call(read_secret_file, path)


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except (ElasticError, StorageError) as error:
        raise click.ClickException(str(error)) from error
