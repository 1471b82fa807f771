"""What somebody at a terminal sees while a command works: a spinner on standard error, and nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def is_watched(*, quiet: bool = False) -> bool:
    """Whether somebody sees standard error; with --json nobody wants to."""
    return sys.stderr.isatty() and not quiet


@contextmanager
def waiting(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Spin until the end of the block; gives a function that changes the text.

    Print results behind the block: what is printed inside goes where the spinner is.
    """
    if not is_watched(quiet=quiet):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)) as status:
        yield lambda other: status.update(Text(other))
