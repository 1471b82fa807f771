"""Output on standard error while a command works: a spinner at a terminal, and the log of the engine."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_PACKAGES = ("elastic", "mdp", "migration", "storage")


def is_interactive(*, quiet: bool = False) -> bool:
    """Return whether progress can be drawn: standard error is a terminal, and the command is not quiet."""
    return sys.stderr.isatty() and not quiet


@contextmanager
def show_spinner(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show a spinner during the block; yield a function that changes its text.

    Print results after the block: what is printed inside goes to standard error.
    """
    if not is_interactive(quiet=quiet):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)) as status:
        yield lambda other: status.update(Text(other))


class _EchoHandler(logging.Handler):
    """Writes to the current standard error, which a spinner replaces while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


@contextmanager
def show_logs(level: int = logging.INFO) -> Iterator[None]:
    """Print log records of the engine at `level` and above during the block."""
    handler = _EchoHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    loggers = [logging.getLogger(package) for package in _PACKAGES]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, old in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(old)
