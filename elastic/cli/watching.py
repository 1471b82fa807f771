"""`elastic status`, `watch` and `journal`: how a job is, once or again and again, and what was decided about it."""

import json
import math
import sys
import time
from datetime import datetime
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live

from elastic.cli import rendering
from elastic.cli.client import Client
from elastic.cli.connection import AS_JSON, Connection, reaching


@click.command("status")
@AS_JSON
@reaching
def status(connection: Connection, as_json: bool) -> None:
    """How a job is: its nodes, tasks, batches, rows and losses."""
    client = Client(connection)
    if as_json:
        click.echo(json.dumps(_facts(client)))
    else:
        Console().print(_view(client))


@click.command("watch")
@click.option("--every", default=0.5, show_default=True, type=click.FloatRange(0.1, 60), help="Seconds.")
@click.option("--seconds", type=click.FloatRange(0.1), help="Stop by itself after so long.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for every look, as `status` does for one.")
@reaching
def watch(connection: Connection, every: float, seconds: float | None, as_json: bool) -> None:
    """Look at a job again and again, until Ctrl-C; into a file or a pipe, print a line for every change."""
    client = Client(connection)
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    try:
        if as_json:
            _print_looks(client, every, deadline)
        elif sys.stdout.isatty():
            _draw_looks(client, every, deadline)
        else:
            _print_changes(client, every, deadline)
    except KeyboardInterrupt:
        return


def _print_looks(client: Client, every: float, deadline: float) -> None:
    click.echo(json.dumps(_facts(client)))
    while time.monotonic() < deadline:
        time.sleep(every)
        click.echo(json.dumps(_facts(client)))


def _print_changes(client: Client, every: float, deadline: float) -> None:
    """A line with its time whenever something has changed, for files and pipes."""
    printed = ""
    while True:
        line = rendering.line(client.get("status"), _newest(client))
        if line != printed:
            click.echo(f"{datetime.now().astimezone().isoformat(' ', 'seconds')} {line}")
            printed = line
        if time.monotonic() >= deadline:
            return
        time.sleep(every)


def _draw_looks(client: Client, every: float, deadline: float) -> None:
    with Live(_view(client), console=Console(), refresh_per_second=10) as live:
        while time.monotonic() < deadline:
            time.sleep(every)
            live.update(_view(client))


@click.command("journal")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="The newest so many.")
@AS_JSON
@reaching
def journal(connection: Connection, limit: int, as_json: bool) -> None:
    """What was decided about a job in all its lives, newest first."""
    page = Client(connection).get("journal", limit=limit)
    if as_json:
        click.echo(json.dumps(page))
    else:
        Console().print(rendering.journal(page["records"]))


def _view(client: Client) -> Group:
    shown = rendering.status(client.get("status"), client.get("load"), client.get("assignment"))
    return Group(shown, *(rendering.migration(one) for one in _newest(client)))


def _facts(client: Client) -> dict[str, Any]:
    """The status, how busy each node is, and the newest migration if there was one."""
    utilisation = client.get("load")["utilisation"]
    return {**client.get("status"), "utilisation": utilisation, "migration": next(iter(_newest(client)), None)}


def _newest(client: Client) -> list[dict[str, Any]]:
    newest: list[dict[str, Any]] = client.get("migrations")["migrations"][:1]
    return newest
