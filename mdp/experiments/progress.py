"""What experiments say while they run."""

from typing import Protocol


class Progress(Protocol):
    """Someone who watches."""

    def step(self, text: str) -> None:
        """Something begins that may take a while."""
        ...

    def status(self, text: str) -> None:
        """How far that is; the next one replaces it."""
        ...


class Unwatched:
    """For whoever does not look."""

    def step(self, text: str) -> None: ...

    def status(self, text: str) -> None: ...
