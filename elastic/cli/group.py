"""A command group that imports a command when it is used, and lists commands without importing them."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """Where a command is defined, as module:attribute, and its one-line help."""

    target: str
    summary: str


class LazyGroup(click.Group):
    """A group over a table of entries. Help and completion read the table only, so they stay fast."""

    def __init__(self, *args: Any, table: Mapping[str, CommandEntry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _load_command(self.table[cmd_name].target) if cmd_name in self.table else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


def _load_command(target: str) -> click.Command:
    module, _, attribute = target.partition(":")
    if find_spec(module.partition(".")[0]) is None:
        add_working_folder_to_path()
    try:
        command: click.Command = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        if not f"{module}.".startswith(f"{missing.name}."):
            raise
        return _only_in_the_repository
    return command


def add_working_folder_to_path() -> None:
    """Make modules of the current folder importable; an installed script does not have it on its path."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def _only_in_the_repository() -> None:
    """Not in the installed package: clone the repository, and run `make demo` there."""
    raise click.ClickException(
        "this command is in the repository and not in the installed package. Clone it, and run `make demo` there."
    )
