"""The port through which the driver starts and ends processes: Spark tasks, or threads of this process."""

from collections.abc import Callable, Sequence
from typing import Protocol

Ended = Callable[[str, str, str, bool], None]  # node, incarnation, reason, whether by an error of its own


class Launcher(Protocol):
    """Starts and ends incarnations somewhere; `ended` is called when one is over.

    An incarnation without the name of a node is a spare: its process waits for a name, see `elastic.node.spare`.
    """

    def start(self, node: str, incarnation: str, driver: str, ended: Ended) -> None: ...

    def cancel(self, incarnation: str) -> None:
        """End it if it still runs; it may be silent, slow or not started."""
        ...

    def wait(self, incarnations: Sequence[str], seconds: float) -> list[str]:
        """Wait until they are over; return those that are not."""
        ...
