"""`elastic plan`, `scale` and `rebalance`."""

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from rich.console import Console

from elastic.cli.client import Client, RequestFailed
from elastic.cli.completion import complete_nodes
from elastic.cli.connection import Connection, connection_options
from elastic.cli.migrating import migrate
from elastic.cli.options import JSON_OPTION, KEY_STRATEGIES, STRATEGIES
from elastic.cli.rendering import render_levels, render_plans
from elastic.cli.terminal import show_spinner
from elastic.control.key_request import LEVEL_OPTIONS, LEVELS, KeyRequest
from elastic.control.request import MODES, TRANSFERS, ScaleRequest

_Command = TypeVar("_Command", bound=Callable[..., Any])
_TASK_PLAN_FIELDS = ("tau", "relax", "value", "mode")
_KEY_PLAN_FIELDS = ("theta", "stage", "most_entries", "key_strategy", "relax")


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
_LEVEL_OPTIONS = _combine(
    click.option(
        "--level", type=click.Choice(list(LEVELS)), default="tasks", show_default=True, help=_describe(LEVELS)
    ),
    click.option(
        "--theta",
        default=KeyRequest.theta,
        show_default=True,
        type=click.FloatRange(0),
        help="Imbalance tolerance of the levels keys and auto, as tau of the level tasks.",
    ),
    click.option("--stage", help="Stage whose keys move; by default the only one that is grouped by table."),
    click.option(
        "--most-entries",
        default=KeyRequest.most_entries,
        show_default=True,
        type=click.IntRange(1),
        help="Maximum number of entries of the key table.",
    ),
    click.option(
        "--key-strategy",
        type=click.Choice(KEY_STRATEGIES),
        default=KeyRequest.strategy,
        show_default=True,
        help="Planning strategy of the keys.",
    ),
)
_MODE_OPTION = click.option(
    "--mode", type=click.Choice(list(MODES)), default=ScaleRequest.mode, show_default=True, help=_describe(MODES)
)
_MOVEMENT_OPTIONS = _combine(
    click.option(
        "--strategy",
        type=click.Choice(STRATEGIES),
        default=ScaleRequest.strategy,
        show_default=True,
        help="Planning strategy.",
    ),
    _MODE_OPTION,
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
@_MODE_OPTION
@_LEVEL_OPTIONS
@JSON_OPTION
@connection_options
def plan(connection: Connection, level: str, as_json: bool, **options: Any) -> None:
    """Compare the plans of several strategies, or of the levels tasks and keys; changes nothing."""
    given = _select_options(level, options, for_tasks=("nodes", "add", "remove", "strategies"))
    client = Client(connection)
    with show_spinner("planning", quiet=as_json):
        if level == "tasks":
            found = client.get("plan", strategy=given.pop("strategies", None), **given)
        else:
            found = client.get("balance", **given)
    if as_json:
        click.echo(json.dumps(found))
    else:
        Console().print(render_plans(found["plans"]) if level == "tasks" else render_levels(found, level))


@click.command("scale")
@_TARGET_OPTIONS
@_BALANCE_OPTIONS
@_MOVEMENT_OPTIONS
@JSON_OPTION
@connection_options
def scale(connection: Connection, nodes: int | None, yes: bool, detach: bool, as_json: bool, **options: Any) -> None:
    """Change the number of nodes of a running job: show the plan, ask, carry it out and follow it."""
    if nodes is None and options["add"] is None and not options["remove"]:
        raise click.UsageError("A target is missing. Give one of --nodes, --add and --remove.")
    body = _drop_unset({"nodes": nodes, **options})
    client = Client(connection)
    if not (yes or as_json):
        _confirm_tasks(client, body)
    migrate(client, "scale", body, detach=detach, as_json=as_json)


@click.command("rebalance")
@_LEVEL_OPTIONS
@_BALANCE_OPTIONS
@_MOVEMENT_OPTIONS
@JSON_OPTION
@connection_options
def rebalance(connection: Connection, level: str, yes: bool, detach: bool, as_json: bool, **options: Any) -> None:
    """Move tasks or keys between the current nodes until none is above its cap.

    Shows the plan, or with --level auto both plans and the reason for its choice, asks, carries it out and follows it.
    """
    body = _select_options(level, options)
    client = Client(connection)
    if not (yes or as_json):
        if level == "tasks":
            _confirm_tasks(client, body)
        else:
            _confirm_keys(client, level, body)
    migrate(client, "rebalance", {"level": level, **body}, detach=detach, as_json=as_json)


def _select_options(level: str, options: dict[str, Any], for_tasks: Sequence[str] = ()) -> dict[str, Any]:
    """Return the options of a level that have a value; one that was given and is of another level is refused."""
    context = click.get_current_context()
    own = {*LEVEL_OPTIONS[level], *(for_tasks if level == "tasks" else ())}
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in options.keys() - own and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"{parameter.opts[0]} is not an option of level {level}. Omit it, or change --level."
            )
    return _drop_unset({name: value for name, value in options.items() if name in own})


def _confirm_tasks(client: Client, body: dict[str, Any]) -> None:
    """Show the plan to move tasks, and abort unless the user confirms it."""
    names = ("nodes", "add", "remove", *_TASK_PLAN_FIELDS)
    query = {name: body[name] for name in names if name in body}
    with show_spinner("planning"):
        comparison = client.get("plan", strategy=[body["strategy"]], **query)
    Console().print(render_plans(comparison["plans"]))
    _confirm(has_plan=comparison["plans"][0]["plan"] is not None)


def _confirm_keys(client: Client, level: str, body: dict[str, Any]) -> None:
    """Show the plan to move keys, or those of both levels, and abort unless the user confirms it."""
    with show_spinner("planning"):
        balance = client.get("balance", **{name: body[name] for name in (*_KEY_PLAN_FIELDS, "mode") if name in body})
    Console().print(render_levels(balance, level))
    _confirm(has_plan=level == "auto" or balance["keys"]["plan"] is not None)


def _confirm(*, has_plan: bool) -> None:
    if not has_plan:
        raise RequestFailed("there is no plan, so nothing was changed. See the reason above.")
    click.confirm("Carry it out?", abort=True)


def _drop_unset(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value not in (None, (), [])}
