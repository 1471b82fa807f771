"""Commands that are imported when they are used, and listed without being imported."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """Where a command is, as module:attribute, and what it is for."""

    place: str
    purpose: str


class Commands(click.Group):
    """A group over a table of entries. Help and completion read the table alone, whatever a command brings with it."""

    def __init__(self, *arguments: Any, table: Mapping[str, Entry], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return _loaded(self.table[cmd_name].place) if cmd_name in self.table else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.purpose) for name, entry in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [
            CompletionItem(name, help=entry.purpose)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return named + click.Command.shell_complete(self, ctx, incomplete)


def _loaded(place: str) -> click.Command:
    module, _, attribute = place.partition(":")
    if find_spec(module.partition(".")[0]) is None:
        with_this_folder()
    try:
        command: click.Command = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        if not f"{module}.".startswith(f"{missing.name}."):
            raise
        return _only_in_the_repository
    return command


def with_this_folder() -> None:
    """Modules of the current folder can be imported; the path of an installed script leaves that folder out."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def _only_in_the_repository() -> None:
    """Part of the repository, and not of the installed package: clone it, and run `make demo` there."""
    raise click.ClickException(
        "this command is part of the repository, and not of the installed package. Clone it, and run `make demo` there."
    )
