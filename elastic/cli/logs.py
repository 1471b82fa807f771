"""The log of the engine on standard error, for commands that run it in their own process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

_PACKAGES = ("elastic", "mdp", "migration", "storage")


class _Echo(logging.Handler):
    """Writes to the standard error of the moment: a spinner replaces it while it spins."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


@contextmanager
def log_shown(level: int = logging.INFO) -> Iterator[None]:
    """Show what the engine logs at `level` and above until the end of the block."""
    handler = _Echo()
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
