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
    "learn": "elastic.cli.learn",
    "project": "elastic.cli.project",
    "doctor": "elastic.cli.doctor",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[name]).command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=_version_text())
def main() -> None:
    """Change the parallelism of a stateful streaming operator on Spark while it runs."""


if __name__ == "__main__":
    main()
