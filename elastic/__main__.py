"""The `elastic` command line."""

import platform
from collections.abc import Mapping

import click

from elastic import __version__
from elastic.cli.group import Commands, Entry

COMMANDS: Mapping[str, Entry] = {
    "run": Entry("elastic.cli.run:command", "Run an operator on a stream, with the API and the page beside it."),
    "demo": Entry("examples.demo.command:command", "Mine frequent patterns while the job scales and a node is killed."),
    "status": Entry("elastic.cli.watching:status", "How a job is: its nodes, tasks, batches, rows and losses."),
    "watch": Entry("elastic.cli.watching:watch", "Look at a job again and again, until Ctrl-C."),
    "plan": Entry("elastic.cli.scaling:plan", "What several strategies would do, side by side; changes nothing."),
    "scale": Entry("elastic.cli.scaling:scale", "Change the number of nodes of a running job."),
    "rebalance": Entry("elastic.cli.scaling:rebalance", "Move tasks between the nodes that there are."),
    "pause": Entry("elastic.cli.scaling:pause", "Stop the migration under way after its mini-migration."),
    "resume": Entry("elastic.cli.scaling:resume", "Go on with a paused migration."),
    "cancel": Entry("elastic.cli.scaling:cancel", "Leave out what the migration under way has not begun."),
    "journal": Entry("elastic.cli.watching:journal", "What was decided about a job in all its lives, newest first."),
    "learn": Entry("elastic.cli.learn:command", "Learn which migrations are likely, from logs or from a journal."),
    "project": Entry("elastic.cli.project:command", "Compute what migrations will cost in the long run."),
    "bench": Entry("elastic.cli.bench:command", "Run experiments and keep their numbers and pictures."),
    "doctor": Entry("elastic.cli.doctor:command", "Look for what is missing here, and say how to mend it."),
    "completion": Entry("elastic.cli.completion:command", "Print the script that completes all this in your shell."),
}


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    # Imported late: it brings the compiler with it.
    from migration import kernel_info

    kernel = kernel_info()
    click.echo(f"elastic {__version__}\npython  {platform.python_version()}\nkernels {kernel.name}")
    if kernel.cache:
        click.echo(f"        compiled code is cached in {kernel.cache}")
    ctx.exit()


@click.group(cls=Commands, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show versions, and which kernels are in use.",
)
def main() -> None:
    """Change the parallelism of a stateful streaming operator on Spark while it runs."""


if __name__ == "__main__":
    # As the installed script is called, in usage lines and for completion.
    main(prog_name="elastic")
