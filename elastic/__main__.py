"""The `elastic` command line."""

import platform
from collections.abc import Mapping

import click

from elastic import __version__
from elastic.cli.group import CommandEntry, LazyGroup

COMMANDS: Mapping[str, CommandEntry] = {
    "run": CommandEntry("elastic.cli.run:command", "Run an operator on a stream, with the API and the page."),
    "demo": CommandEntry(
        "examples.demo.command:command", "Mine frequent patterns while the job scales and a node is killed."
    ),
    "status": CommandEntry("elastic.cli.watching:status", "Show the nodes, tasks, batches, rows and losses of a job."),
    "watch": CommandEntry("elastic.cli.watching:watch", "Poll a job until Ctrl-C."),
    "keys": CommandEntry("elastic.cli.watching:keys", "Show the heaviest keys of a job."),
    "plan": CommandEntry("elastic.cli.scaling:plan", "Compare plans of several strategies or of both levels."),
    "scale": CommandEntry("elastic.cli.scaling:scale", "Change the number of nodes of a running job."),
    "rebalance": CommandEntry("elastic.cli.scaling:rebalance", "Move tasks or keys between the current nodes."),
    "split": CommandEntry("elastic.cli.splitting:command", "Change which keys of a job are split over several nodes."),
    "pause": CommandEntry("elastic.cli.migrating:pause", "Pause the current migration after what is in flight."),
    "resume": CommandEntry("elastic.cli.migrating:resume", "Resume a paused migration."),
    "cancel": CommandEntry("elastic.cli.migrating:cancel", "Skip the moves that have not started."),
    "journal": CommandEntry("elastic.cli.watching:journal", "Show migrations and decisions of a job, newest first."),
    "export": CommandEntry("elastic.cli.portable:export_command", "Write the state of a job as Parquet files."),
    "import": CommandEntry("elastic.cli.portable:import_command", "Let a new job begin with state from files."),
    "resign": CommandEntry("elastic.cli.portable:resign_command", "Sign a stopped job with another secret."),
    "learn": CommandEntry("elastic.cli.learn:command", "Learn the probabilities of migrations from logs or a journal."),
    "project": CommandEntry("elastic.cli.project:command", "Compute the expected cost of future migrations."),
    "bench": CommandEntry("elastic.cli.bench:command", "Run experiments and save their numbers and charts."),
    "doctor": CommandEntry("elastic.cli.doctor:command", "Check this machine, and say how to fix problems."),
    "completion": CommandEntry("elastic.cli.completion:command", "Print the completion script of a shell."),
}


def _show_version(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    if not requested or ctx.resilient_parsing:
        return
    # Imported here because it loads the compiler.
    from migration import kernel_info

    kernel = kernel_info()
    click.echo(f"elastic {__version__}\npython  {platform.python_version()}\nkernels {kernel.name}")
    if kernel.cache:
        click.echo(f"        cache of compiled code: {kernel.cache}")
    ctx.exit()


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show versions and the kernels in use.",
)
def main() -> None:
    """Change the parallelism of a stateful streaming operator on Spark while it runs."""


if __name__ == "__main__":
    # The name of the installed script, for usage lines and completion.
    main(prog_name="elastic")
