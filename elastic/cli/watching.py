"""`elastic status`, `watch`, `keys` and `journal`: the state of a job, once or repeatedly, and its journal."""

import json
import math
import sys
import time
from datetime import datetime
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live

from elastic.cli.client import Client
from elastic.cli.connection import Connection, connection_options
from elastic.cli.options import JSON_OPTION
from elastic.cli.rendering import format_line, render_journal, render_keys, render_migration, render_status


@click.command("status")
@JSON_OPTION
@connection_options
def status(connection: Connection, as_json: bool) -> None:
    """Show the nodes, tasks, batches, rows and losses of a job."""
    client = Client(connection)
    if as_json:
        click.echo(json.dumps(_read_status(client)))
    else:
        Console().print(_render_view(client))


@click.command("watch")
@click.option(
    "--interval", default=0.5, show_default=True, type=click.FloatRange(0.1, 60), help="Seconds between polls."
)
@click.option("--duration", type=click.FloatRange(0.1), help="Stop after this many seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per poll, in the format of `status`.")
@connection_options
def watch(connection: Connection, interval: float, duration: float | None, as_json: bool) -> None:
    """Poll a job until Ctrl-C; into a file or a pipe, print one line per change."""
    client = Client(connection)
    deadline = math.inf if duration is None else time.monotonic() + duration
    try:
        if as_json:
            _print_json(client, interval, deadline)
        elif sys.stdout.isatty():
            _draw(client, interval, deadline)
        else:
            _print_changes(client, interval, deadline)
    except KeyboardInterrupt:
        return


def _print_json(client: Client, interval: float, deadline: float) -> None:
    click.echo(json.dumps(_read_status(client)))
    while time.monotonic() < deadline:
        time.sleep(interval)
        click.echo(json.dumps(_read_status(client)))


def _print_changes(client: Client, interval: float, deadline: float) -> None:
    """Print a line with a timestamp whenever something has changed."""
    printed = ""
    while True:
        line = format_line(client.get("status"), _read_newest_migration(client))
        if line != printed:
            click.echo(f"{datetime.now().astimezone().isoformat(' ', 'seconds')} {line}")
            printed = line
        if time.monotonic() >= deadline:
            return
        time.sleep(interval)


def _draw(client: Client, interval: float, deadline: float) -> None:
    with Live(_render_view(client), console=Console(), refresh_per_second=10) as live:
        while time.monotonic() < deadline:
            time.sleep(interval)
            live.update(_render_view(client))


@click.command("keys")
@click.option("--top", default=20, show_default=True, type=click.IntRange(1, 1_000), help="Maximum number of keys.")
@click.option("--stage", help="Name of a stage; by default all whose keys are counted.")
@JSON_OPTION
@connection_options
def keys(connection: Connection, top: int, stage: str | None, as_json: bool) -> None:
    """Show the heaviest keys of the last interval; without the token only their hashes."""
    found = Client(connection).get("keys", top=top, stage=stage)
    if as_json:
        click.echo(json.dumps(found))
    else:
        Console().print(render_keys(found["keys"]))


@click.command("journal")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="Maximum number of records.")
@JSON_OPTION
@connection_options
def journal(connection: Connection, limit: int, as_json: bool) -> None:
    """Show migrations and autoscaling decisions of all runs of a job, newest first."""
    page = Client(connection).get("journal", limit=limit)
    if as_json:
        click.echo(json.dumps(page))
    else:
        Console().print(render_journal(page["records"]))


def _render_view(client: Client) -> Group:
    view = render_status(client.get("status"), client.get("load"), client.get("assignment"))
    return Group(view, *(render_migration(migration) for migration in _read_newest_migration(client)))


def _read_status(client: Client) -> dict[str, Any]:
    """Return the status, the utilisation by node, and the newest migration or None."""
    utilisation = client.get("load")["utilisation"]
    migration = next(iter(_read_newest_migration(client)), None)
    return {**client.get("status"), "utilisation": utilisation, "migration": migration}


def _read_newest_migration(client: Client) -> list[dict[str, Any]]:
    """Return a list of at most one migration."""
    newest: list[dict[str, Any]] = client.get("migrations")["migrations"][:1]
    return newest
