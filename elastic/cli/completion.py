"""`elastic completion`: the script by which a shell completes commands, options and names; and the names of nodes."""

import os

import click
from click.shell_completion import get_completion_class

from elastic.cli.client import Client
from elastic.cli.connection import found

# What the scripts of click ask for: the name of the program, and the variable that tells it to complete.
PROGRAM, VARIABLE = "elastic", "_ELASTIC_COMPLETE"
_PATIENCE_SECONDS = 1.0  # whoever presses a key waits no longer


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    r"""Print the script that completes commands, options, jobs and nodes in your shell.

    \b
    bash, in ~/.bashrc:                   eval "$(elastic completion bash)"
    zsh, in ~/.zshrc:                     eval "$(elastic completion zsh)"
    fish, once, into its own folder:      elastic completion fish > ~/.config/fish/completions/elastic.fish
    """
    shell_of = get_completion_class(shell)
    if shell_of is None:
        raise click.UsageError(f"click {click.__version__} knows no completion for {shell}. Install a newer one.")
    click.echo(shell_of(ctx.find_root().command, {}, PROGRAM, VARIABLE).source(), nl=False)


def nodes_there(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes names of nodes of the job that is meant, if they were not named yet; nothing if it does not answer."""
    try:
        job = found(ctx.params.get("job"), ctx.params.get("url"), None, os.environ)
        with ctx.scope():
            nodes = [node["name"] for node in Client(job, _PATIENCE_SECONDS).get("assignment")["nodes"]]
    except (click.ClickException, KeyError, TypeError):
        return []
    named = ctx.params.get(parameter.name or "") or ()
    return [node for node in nodes if node.startswith(incomplete) and node not in named]
