"""`elastic split`."""

import json
from typing import Any

import click

from elastic.cli.client import Client
from elastic.cli.connection import Connection, connection_options
from elastic.cli.options import JSON_OPTION
from elastic.routing import SPLITS


@click.command("split")
@click.option(
    "--keys",
    "split",
    type=click.Choice(list(SPLITS)),
    default="head",
    show_default=True,
    help="; ".join(f"{name}: {meaning}" for name, meaning in SPLITS.items()),
)
@click.option("--stage", help="Operator whose keys are split; by default the only one behind a partial stage.")
@JSON_OPTION
@connection_options
def command(connection: Connection, split: str, stage: str | None, as_json: bool) -> None:
    """Change which keys a partial stage splits over several nodes while the job runs; no state moves.

    The job was started with partial(operator). By default keys of the head are split, those with more than 1 / (5 n) of
    all rows for n nodes, and all others keep one place.
    """
    body: dict[str, Any] = {"split": split} if stage is None else {"split": split, "stage": stage}
    changed = Client(connection).post("split", body)
    click.echo(json.dumps(changed) if as_json else f"Keys that are split from now on: {split} ({SPLITS[split]}).")
