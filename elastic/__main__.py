"""The `elastic` command line."""

import platform
from collections.abc import Mapping
from importlib import import_module

import click

from elastic import __version__
from migration import kernel_info


def _version_text() -> str:
    kernel = kernel_info()
    lines = [f"elastic {__version__}", f"python  {platform.python_version()}", f"kernels {kernel.name}"]
    if kernel.cache:
        lines.append(f"        compiled code is cached in {kernel.cache}")
    return "\n".join(lines)


# A command is imported when it is used: some bring a compiler, Spark or charts with them.
COMMANDS: Mapping[str, str] = {
    "run": "elastic.cli.run:command",
    "status": "elastic.cli.watching:status",
    "watch": "elastic.cli.watching:watch",
    "plan": "elastic.cli.scaling:plan",
    "scale": "elastic.cli.scaling:scale",
    "rebalance": "elastic.cli.scaling:rebalance",
    "pause": "elastic.cli.scaling:pause",
    "resume": "elastic.cli.scaling:resume",
    "cancel": "elastic.cli.scaling:cancel",
    "journal": "elastic.cli.watching:journal",
    "learn": "elastic.cli.learn:command",
    "project": "elastic.cli.project:command",
    "bench": "elastic.cli.bench:command",
    "doctor": "elastic.cli.doctor:command",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=_version_text())
def main() -> None:
    """Change the parallelism of a stateful streaming operator on Spark while it runs."""


if __name__ == "__main__":
    main()
