"""`elastic plan`, `scale`, `rebalance`, `pause`, `resume` and `cancel`."""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.live import Live

from elastic.cli.client import Client, MigrationCancelled, MigrationFailed, RequestFailed
from elastic.cli.completion import complete_nodes
from elastic.cli.connection import Connection, connection_options
from elastic.cli.options import JSON_OPTION, STRATEGIES
from elastic.cli.rendering import render_migration, render_plans
from elastic.cli.terminal import is_interactive, show_spinner
from elastic.control.request import MODES, TRANSFERS, ScaleRequest

_Command = TypeVar("_Command", bound=Callable[..., Any])
_POLL_SECONDS = 0.2
_BALANCE_FIELDS = ("tau", "relax", "value")


def _combine(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _describe(choices: Any) -> str:
    return "; ".join(f"{name}: {meaning}" for name, meaning in choices.items())


_TARGET_OPTIONS = _combine(
    click.option("--nodes", type=click.IntRange(1), help="Target number of nodes."),
    click.option("--add", type=click.IntRange(1), help="Number of nodes to add."),
    click.option(
        "--remove",
        multiple=True,
        metavar="NODE",
        shell_complete=complete_nodes,
        help="Name of a node to remove; repeatable.",
    ),
)
_BALANCE_OPTIONS = _combine(
    click.option(
        "--tau",
        default=ScaleRequest.tau,
        show_default=True,
        type=click.FloatRange(0),
        help="Imbalance tolerance: a node may carry at most 1 + tau times the mean work.",
    ),
    click.option(
        "--relax/--no-relax",
        default=ScaleRequest.relax,
        show_default=True,
        help="If no assignment is balanced, use the smallest feasible cap, or refuse the request.",
    ),
    click.option("--value", metavar="TABLE", help="Value table in the job's store, for the strategy mtm."),
)
_MOVEMENT_OPTIONS = _combine(
    click.option(
        "--strategy",
        type=click.Choice(STRATEGIES),
        default=ScaleRequest.strategy,
        show_default=True,
        help="Planning strategy.",
    ),
    click.option(
        "--mode", type=click.Choice(list(MODES)), default=ScaleRequest.mode, show_default=True, help=_describe(MODES)
    ),
    click.option(
        "--transfer",
        type=click.Choice(list(TRANSFERS)),
        default=ScaleRequest.transfer,
        show_default=True,
        help=_describe(TRANSFERS),
    ),
    click.option(
        "--tasks-per-node",
        type=click.IntRange(1),
        default=ScaleRequest.tasks_per_node,
        show_default=True,
        help="Maximum number of tasks in flight per node in progressive mode.",
    ),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
    click.option("--detach", is_flag=True, help="Do not wait for the migration to end."),
)


@click.command("plan")
@_TARGET_OPTIONS
@_BALANCE_OPTIONS
@click.option(
    "--strategy", "strategies", multiple=True, type=click.Choice(STRATEGIES), help="Strategy to compare; repeatable."
)
@JSON_OPTION
@connection_options
def plan(connection: Connection, strategies: tuple[str, ...], as_json: bool, **query: Any) -> None:
    """Compare the plans of several strategies; changes nothing."""
    client = Client(connection)
    with show_spinner("planning", quiet=as_json):
        comparison = client.get("plan", strategy=list(strategies) or None, **_drop_unset(query))
    if as_json:
        click.echo(json.dumps(comparison))
    else:
        Console().print(render_plans(comparison["plans"]))


@click.command("scale")
@_TARGET_OPTIONS
@_BALANCE_OPTIONS
@_MOVEMENT_OPTIONS
@JSON_OPTION
@connection_options
def scale(connection: Connection, nodes: int | None, add: int | None, remove: tuple[str, ...], **options: Any) -> None:
    """Change the number of nodes of a running job: show the plan, ask, carry it out and follow it."""
    if nodes is None and add is None and not remove:
        raise click.UsageError("A target is missing. Give one of --nodes, --add and --remove.")
    _migrate(Client(connection), "scale", {"nodes": nodes, "add": add, "remove": list(remove)}, **options)


@click.command("rebalance")
@_BALANCE_OPTIONS
@_MOVEMENT_OPTIONS
@JSON_OPTION
@connection_options
def rebalance(connection: Connection, **options: Any) -> None:
    """Move tasks between the current nodes until none is above its cap."""
    _migrate(Client(connection), "rebalance", {}, **options)


def _migrate(
    client: Client, verb: str, target: dict[str, Any], *, yes: bool, detach: bool, as_json: bool, **options: Any
) -> None:
    if not (yes or as_json):
        _confirm(client, target, options)
    migration = client.post(verb, _drop_unset({**target, **options}))
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


def _confirm(client: Client, target: dict[str, Any], options: dict[str, Any]) -> None:
    """Show the plan, and abort unless the user confirms it."""
    query = {**target, **{name: options[name] for name in _BALANCE_FIELDS}}
    with show_spinner("planning"):
        comparison = client.get("plan", strategy=[options["strategy"]], **_drop_unset(query))
    Console().print(render_plans(comparison["plans"]))
    if comparison["plans"][0]["plan"] is None:
        raise RequestFailed("there is no plan, so nothing was changed. See the reason above.")
    click.confirm("Carry it out?", abort=True)


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


def _drop_unset(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, (), [])}


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


pause = _create_command("pause", "Pause the current migration after its current mini-migration.")
resume = _create_command("resume", "Resume a paused migration.")
cancel = _create_command("cancel", "Skip the moves that have not started; completed moves stay.")
