"""`elastic completion`: the completion script of a shell; and completion of node names."""

import os

import click
from click.shell_completion import get_completion_class

from elastic.cli.client import Client
from elastic.cli.connection import find_connection

# What click's scripts need: the name of the program, and the variable that makes it complete.
PROGRAM, VARIABLE = "elastic", "_ELASTIC_COMPLETE"
_TIMEOUT_SECONDS = 1.0  # a user is waiting at the prompt


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    r"""Print the script that completes commands, options, jobs and nodes in a shell.

    \b
    bash, in ~/.bashrc:    eval "$(elastic completion bash)"
    zsh, in ~/.zshrc:      eval "$(elastic completion zsh)"
    fish, once:            elastic completion fish > ~/.config/fish/completions/elastic.fish
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"click {click.__version__} has no completion for {shell}. Install a newer click.")
    click.echo(completion_class(ctx.find_root().command, {}, PROGRAM, VARIABLE).source(), nl=False)


def complete_nodes(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the job's nodes that are not on the command line yet; none if the job does not respond."""
    try:
        connection = find_connection(ctx.params.get("job"), ctx.params.get("url"), None, os.environ)
        with ctx.scope():
            nodes = [node["name"] for node in Client(connection, _TIMEOUT_SECONDS).get("assignment")["nodes"]]
    except (click.ClickException, KeyError, TypeError):
        return []
    given = ctx.params.get(parameter.name or "") or ()
    return [node for node in nodes if node.startswith(incomplete) and node not in given]
