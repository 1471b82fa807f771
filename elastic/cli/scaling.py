"""`elastic plan`, `scale`, `rebalance`, `pause`, `resume` and `cancel`: plan, confirm, run, watch."""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.live import Live

from elastic.cli import rendering
from elastic.cli.client import Cancelled, Client, Failed, Refused
from elastic.cli.completion import nodes_there
from elastic.cli.connection import AS_JSON, Connection, reaching
from elastic.cli.known import MODES, RELAX, STRATEGIES, TAU, TRANSFERS
from elastic.cli.waiting import is_watched, waiting

_Command = TypeVar("_Command", bound=Callable[..., Any])
_LOOK_SECONDS = 0.2


def _options(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    def decorated(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


_WANTED = _options(
    click.option("--nodes", type=click.IntRange(1), help="So many in all."),
    click.option("--add", type=click.IntRange(1), help="So many more."),
    click.option(
        "--remove",
        multiple=True,
        metavar="NODE",
        shell_complete=nodes_there,
        help="This very node must leave; repeatable.",
    ),
)
_BALANCE = _options(
    click.option("--tau", default=TAU, show_default=True, type=click.FloatRange(0), help="Allowed above the mean."),
    click.option(
        "--relax/--no-relax",
        default=RELAX,
        show_default=True,
        help="Take the smallest feasible cap if nothing is balanced, or refuse the request.",
    ),
    click.option("--value", metavar="TABLE", help="A value table in the job's store, for the strategy mtm."),
)
_MOVEMENT = _options(
    click.option("--strategy", type=click.Choice(STRATEGIES), default="ssm", show_default=True),
    click.option("--mode", type=click.Choice(MODES), default="progressive", show_default=True),
    click.option("--transfer", type=click.Choice(TRANSFERS), default="store", show_default=True),
    click.option("--tasks-per-node", type=click.IntRange(1), default=2, show_default=True, help="On their way."),
    click.option("--yes", is_flag=True, help="Do not ask."),
    click.option("--detach", is_flag=True, help="Do not wait for the end."),
)


@click.command("plan")
@_WANTED
@_BALANCE
@click.option("--strategy", "strategies", multiple=True, type=click.Choice(STRATEGIES), help="Repeatable.")
@AS_JSON
@reaching
def plan(connection: Connection, strategies: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """What several strategies would do, side by side; changes nothing."""
    client = Client(connection)
    with waiting("planning", quiet=as_json):
        compared = client.get("plan", strategy=list(strategies) or None, **_said(asked))
    if as_json:
        click.echo(json.dumps(compared))
    else:
        Console().print(rendering.plans(compared["plans"]))


@click.command("scale")
@_WANTED
@_BALANCE
@_MOVEMENT
@AS_JSON
@reaching
def scale(connection: Connection, nodes: int | None, add: int | None, remove: tuple[str, ...], **how: Any) -> None:
    """Change the number of nodes of a running job: shows the plan, asks, and follows it to its end."""
    if nodes is None and add is None and not remove:
        raise click.UsageError("Say what to change: one of --nodes, --add and --remove.")
    _carried_out(Client(connection), "scale", {"nodes": nodes, "add": add, "remove": list(remove)}, **how)


@click.command("rebalance")
@_BALANCE
@_MOVEMENT
@AS_JSON
@reaching
def rebalance(connection: Connection, **how: Any) -> None:
    """Move tasks between the nodes that there are, until none carries too much."""
    _carried_out(Client(connection), "rebalance", {}, **how)


def _carried_out(
    client: Client, verb: str, wanted: dict[str, Any], *, yes: bool, detach: bool, as_json: bool, **how: Any
) -> None:
    if not (yes or as_json):
        query = {name: value for name, value in how.items() if name in ("tau", "relax", "value")}
        with waiting("planning"):
            compared = client.get("plan", strategy=[how["strategy"]], **_said({**wanted, **query}))
        Console().print(rendering.plans(compared["plans"]))
        if compared["plans"][0]["plan"] is None:
            raise Refused("there is no plan. Nothing was changed.")
        click.confirm("Carry it out?", abort=True)
    begun = client.post(verb, _said({**wanted, **how}))
    ended = begun if detach else _followed(client, begun, quiet=as_json)
    if as_json:
        click.echo(json.dumps(ended))
    else:
        Console().print(rendering.migration(ended))
    if ended["is_over"] and ended["progress"]["phase"] != "done":
        outcome = Cancelled if ended["progress"]["phase"] == "cancelled" else Failed
        raise outcome(ended["error"] or f"the migration was {ended['progress']['phase']}.")


def _followed(client: Client, begun: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """Until it is over; drawn for whoever looks, on standard error."""
    found = begun
    console = Console(stderr=True, quiet=not is_watched(quiet=quiet))
    try:
        with Live(rendering.migration(found), console=console, refresh_per_second=10, transient=True) as live:
            while not found["is_over"]:
                time.sleep(_LOOK_SECONDS)
                found = client.get(f"migrations/{begun['number']}")
                live.update(rendering.migration(found))
    except KeyboardInterrupt as ended:
        raise Refused("it goes on without us. `elastic watch` follows it, `elastic cancel` ends it.") from ended
    return found


def _said(asked: dict[str, Any]) -> dict[str, Any]:
    """Without what was not said."""
    return {name: value for name, value in asked.items() if value not in (None, (), [])}


def _steered(verb: str, help_text: str) -> click.Command:
    @click.command(verb, help=help_text)
    @AS_JSON
    @reaching
    def command(connection: Connection, as_json: bool) -> None:
        client = Client(connection)
        under_way = [one for one in client.get("migrations")["migrations"] if not one["is_over"]]
        if not under_way:
            raise Refused(f"no migration is under way: there is nothing to {verb}.")
        found = client.post(f"migrations/{under_way[0]['number']}/{verb}")
        if as_json:
            click.echo(json.dumps(found))
        else:
            Console().print(rendering.migration(found))

    return command


pause = _steered("pause", "Stop the migration under way after its mini-migration.")
resume = _steered("resume", "Go on with a paused migration.")
cancel = _steered("cancel", "Leave out what the migration under way has not begun; what has moved counts.")
