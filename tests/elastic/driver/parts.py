"""Parts of a job that tests of the driver put together: a context, a first view, a launcher that starts nothing."""

from collections.abc import Sequence
from typing import Any

from elastic.core.coordinator import Coordinator
from elastic.core.ids import Batch, UnitId
from elastic.driver.context import JobContext
from elastic.driver.launcher import Ended
from elastic.local import LocalNetwork
from elastic.routing import Routing
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from elastic.wire import Network
from migration import Assignment
from storage import Secret
from storage.state import Manifest

SECRET = Secret.of("a secret of these tests")


def make_context(network: Network | None = None, **settings: Any) -> JobContext:
    access = StoreAccess("memory:", {}, SECRET.reveal())
    pipeline: Any = None
    return JobContext(
        "job", pipeline, Settings(**settings), access, access.open(), network or LocalNetwork(), "local", None, "token"
    )


def make_coordinator(tasks: int = 4, nodes: int = 2) -> Coordinator:
    assignment = Assignment.even(tasks=tasks, nodes=nodes)
    manifest = Manifest.first([UnitId(0, task) for task in range(tasks)])
    return Coordinator(manifest, Routing.by_hash(assignment), Batch(-1), [False], assignment.nodes)


class FakeLauncher:
    """Starts nothing, and records what it should start and end."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.driver = ""
        self.ended: Ended = lambda *_: None

    def start(self, _node: str, incarnation: str, driver: str, ended: Ended) -> None:
        self.started.append(incarnation)
        self.driver, self.ended = driver, ended

    def cancel(self, incarnation: str) -> None:
        self.cancelled.append(incarnation)

    def wait(self, _incarnations: Sequence[str], _seconds: float) -> list[str]:
        return []
