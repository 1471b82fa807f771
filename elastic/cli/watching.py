"""`elastic status`, `watch` and `journal`: how a job is, once or again and again, and what was decided about it."""

import json
import time

import click
from rich.console import Console, Group
from rich.live import Live

from elastic.cli import rendering
from elastic.cli.client import Client
from elastic.cli.connection import Connection, reaching

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


@click.command("status")
@_AS_JSON
@reaching
def status(connection: Connection, as_json: bool) -> None:
    """How a job is: its nodes, tasks, batches, rows and losses."""
    client = Client(connection)
    if as_json:
        click.echo(json.dumps(client.get("status")))
    else:
        Console().print(_view(client))


@click.command("watch")
@click.option("--every", default=0.5, show_default=True, type=click.FloatRange(0.1, 60), help="Seconds.")
@click.option("--seconds", type=click.FloatRange(0.1), help="Stop by itself after so long.")
@reaching
def watch(connection: Connection, every: float, seconds: float | None) -> None:
    """Look at a job again and again, until Ctrl-C."""
    client = Client(connection)
    deadline = None if seconds is None else time.monotonic() + seconds
    with Live(_view(client), console=Console(), refresh_per_second=10) as live:
        try:
            while deadline is None or time.monotonic() < deadline:
                time.sleep(every)
                live.update(_view(client))
        except KeyboardInterrupt:
            return


@click.command("journal")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="The newest so many.")
@_AS_JSON
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
    newest = client.get("migrations")["migrations"][:1]
    return Group(shown, *(rendering.migration(one) for one in newest))
