"""State that the parts of a node share: its identity, its store and settings, and access to its working thread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from elastic.core.messages import NodeReport
from elastic.node.spec import NodeSpec
from elastic.settings import Settings
from elastic.wire import Network
from storage import Secret, Store

if TYPE_CHECKING:
    from threading import Event


class Fail(Protocol):
    """Ends the node with an error, which the node reports with the cause of the command that it was about."""

    def __call__(self, error: BaseException, cause: str = "") -> None: ...


@dataclass(frozen=True)
class NodeContext:
    """Passed to every part of one node. The callables may be called from any thread."""

    spec: NodeSpec
    store: Store
    network: Network
    closing: "Event"  # set when the node works no more: calls that wait for the store give up
    post: Callable[[Callable[[], None]], None]  # runs a call in the working thread
    report: Callable[[NodeReport], None]  # queues a report for the driver
    fail: Fail

    @property
    def node(self) -> str:
        return self.spec.node

    @property
    def incarnation(self) -> str:
        return self.spec.incarnation

    @property
    def settings(self) -> Settings:
        return self.spec.settings

    @property
    def secret(self) -> Secret:
        return self.spec.store.secret

    def wake(self) -> None:
        """Let the working thread look for work again."""
        self.post(_do_nothing)


def _do_nothing() -> None:
    """End the wait of the working thread."""
