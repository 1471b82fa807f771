"""All errors of this package: typed, with their numbers as attributes and a last sentence that says what to do.

MdpError
├── InvalidMatrix (also a ValueError)     rows that are not probabilities, or invalid node counts
├── InvalidLog (also a ValueError)        a log of loads or node counts that is not usable
│   ├── GapInLog                          a stretch of time without records
│   ├── DuplicatedTime                    several records with one timestamp
│   └── SingleState                       node counts that never change
├── InvalidRecipe (also a ValueError)     invalid options for learning
├── InvalidProjection (also a ValueError) a projection that is not possible
│   └── NothingBalanced                   a node count in the matrix that no balanced partition has
├── InvalidTable (also a ValueError)      a value table that is damaged or does not exist
│   └── UnknownPartition                  a partition the table has no value for
└── MissingPackage                        a feature whose optional package is not installed
"""

from collections.abc import Sequence
from typing import Any


class MdpError(Exception):
    """Base of all errors that this package raises; pickled or copied, it keeps its message and its attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with the message alone, which errors with attributes of their own do not accept.
        return _rebuild, (type(self), self.args), self.__dict__


class InvalidMatrix(MdpError, ValueError):
    """Not a matrix of transition probabilities over node counts."""


class InvalidLog(MdpError, ValueError):
    """A log that is empty, has gaps or duplicates that the recipe does not handle, or never changes."""


class GapInLog(InvalidLog):
    """Some window between the first and the last record has none."""

    def __init__(self, after: str, until: str, windows: int) -> None:
        self.after = after
        self.until = until
        self.windows = windows
        super().__init__(
            f"the log has no record between {after} and {until} ({windows} empty windows in total). "
            "Fix the log, or pass gaps='hold' to keep the last value, or gaps='split' to learn on both sides."
        )


class DuplicatedTime(InvalidLog):
    """Several records have the same timestamp."""

    def __init__(self, time: str, moments: int) -> None:
        self.time = time
        self.moments = moments
        super().__init__(
            f"the log has more than one record of {time} ({moments} duplicated timestamps in total). "
            "Fix the log, or pass duplicates='sum' if they are parts of one load, or duplicates='last'."
        )


class SingleState(InvalidLog):
    """The node count never changes, so there is no migration to learn from."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        super().__init__(
            f"the log never leaves {nodes} nodes, so there is no migration in it. "
            "Give a longer log, smaller windows, or a wider range of node counts."
        )


class InvalidRecipe(MdpError, ValueError):
    """Options for learning that are invalid for any log."""


class InvalidProjection(MdpError, ValueError):
    """A workload, matrix, tau or gamma that no projected cost can be computed for."""


class NothingBalanced(InvalidProjection):
    """The matrix speaks of node counts onto which the workload cannot be balanced."""

    def __init__(self, nodes: Sequence[int], tau: float, smallest_tau: float) -> None:
        self.nodes = tuple(nodes)
        self.tau = tau
        self.smallest_tau = smallest_tau
        listed = ", ".join(str(count) for count in self.nodes)
        super().__init__(
            f"no balanced partition onto {listed} nodes with tau={tau:g}. "
            f"Raise tau to {smallest_tau:.3g}, or pass relax=True to use the smallest feasible caps."
        )


class InvalidTable(MdpError, ValueError):
    """A value table that cannot be read, or that is for another operator."""


class UnknownPartition(InvalidTable):
    """A partition that was not balanced when the table was made."""


class MissingPackage(MdpError):
    """A feature whose optional package is not installed."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        self.feature = feature
        self.package = package
        self.extra = extra
        super().__init__(
            f"{feature} needs the package {package!r}, which is not installed here. "
            f"Run: pip install 'spark-elastic[{extra}]'"
        )


def _rebuild(kind: type[MdpError], args: tuple[Any, ...]) -> MdpError:
    error = kind.__new__(kind)
    error.args = args
    return error
