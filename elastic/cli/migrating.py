"""Start a migration and follow it to its end; `elastic pause`, `resume` and `cancel`."""

import json
import time
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from elastic.cli.client import Client, MigrationCancelled, MigrationFailed, RequestFailed
from elastic.cli.connection import Connection, connection_options
from elastic.cli.options import JSON_OPTION
from elastic.cli.rendering import render_migration
from elastic.cli.terminal import is_interactive

_POLL_SECONDS = 0.2


def migrate(client: Client, verb: str, body: dict[str, Any], *, detach: bool, as_json: bool) -> None:
    """Start a migration, follow it unless detached, and print it; raises if it has failed or was cancelled."""
    migration = client.post(verb, body)
    if not detach:
        migration = _follow(client, migration, quiet=as_json)
    if as_json:
        click.echo(json.dumps(migration))
    else:
        Console().print(render_migration(migration))
    phase = migration["progress"]["phase"]
    if migration["is_over"] and phase != "done":
        failure = MigrationCancelled if phase == "cancelled" else MigrationFailed
        raise failure(migration["error"] or f"the migration has ended: {phase}.")


def _follow(client: Client, migration: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Poll a migration until it has ended, with its progress on standard error; return its final state."""
    console = Console(stderr=True, quiet=not is_interactive(quiet=quiet))
    path = f"migrations/{migration['number']}"
    try:
        with Live(render_migration(migration), console=console, refresh_per_second=10, transient=True) as live:
            while not migration["is_over"]:
                time.sleep(_POLL_SECONDS)
                migration = client.get(path)
                live.update(render_migration(migration))
    except KeyboardInterrupt as interrupted:
        raise RequestFailed(
            "stopped watching; the migration continues. Use `elastic watch` to follow it, or `elastic cancel`."
        ) from interrupted
    return migration


def _create_command(verb: str, help_text: str) -> click.Command:
    @click.command(verb, help=help_text)
    @JSON_OPTION
    @connection_options
    def command(connection: Connection, as_json: bool) -> None:
        client = Client(connection)
        running = [migration for migration in client.get("migrations")["migrations"] if not migration["is_over"]]
        if not running:
            raise RequestFailed(f"no migration is in progress, so there is nothing to {verb}.")
        migration = client.post(f"migrations/{running[0]['number']}/{verb}")
        if as_json:
            click.echo(json.dumps(migration))
        else:
            Console().print(render_migration(migration))

    return command


pause = _create_command("pause", "Pause the current migration after its current mini-migration or portion of keys.")
resume = _create_command("resume", "Resume a paused migration.")
cancel = _create_command("cancel", "Skip the moves that have not started; completed moves stay.")
