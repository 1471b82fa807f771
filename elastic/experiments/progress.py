"""The progress of experiments, displayed by the caller."""

from typing import Protocol


class ExperimentProgress(Protocol):
    """Displays the progress of experiments."""

    def step(self, text: str) -> None:
        """A new step begins."""
        ...

    def status(self, text: str) -> None:
        """The status of the current step; replaces the one before."""
        ...


class SilentProgress:
    """Displays nothing."""

    def step(self, text: str) -> None: ...

    def status(self, text: str) -> None: ...
