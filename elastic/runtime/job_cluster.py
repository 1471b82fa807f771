"""A running job as the control plane sees it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from elastic.control import NodeCounters, NodeStep, TaskCounters, Vitals
from elastic.routing import IntervalRouting
from elastic.routing.slots import task_of_slot
from elastic.runtime.controller import Controller
from elastic.runtime.intake.batches import Intake
from elastic.runtime.status import StepStatus
from elastic.runtime.stream import Stream
from migration import Ownership
from migration.live import MigrationRun


class JobCluster:
    """`elastic.control.Cluster` over the controller, the intake and the stream of a job."""

    def __init__(
        self, controller: Controller, intake: Intake, stream: Stream, check_room: Callable[[int], None]
    ) -> None:
        self._controller = controller
        self._intake = intake
        self._stream = stream
        self._check_room = check_room

    def assignment(self) -> Ownership:
        routing = self._controller.committed_routing()
        if not isinstance(routing, IntervalRouting):
            raise TypeError(f"tasks of a {type(routing).__name__} have no assignment")
        return routing.assignment

    def counters(self) -> dict[int, TaskCounters]:
        """Numbers of a task's stages are added up; while it moves, its source counts until the move is committed."""
        found: dict[int, TaskCounters] = defaultdict(lambda: TaskCounters(0, 0.0, 0))
        committed = self._controller.committed_routing()
        for name, node in self._controller.status()["nodes"].items():
            for slot, rows, seconds, state_bytes in node.get("units", ()):
                if name not in committed.owners(slot):
                    continue
                known = found[task_of_slot(slot)]
                found[task_of_slot(slot)] = TaskCounters(
                    known.rows + rows, known.seconds + seconds, known.state_bytes + state_bytes, node["incarnation"]
                )
        return dict(found)

    def vitals(self) -> Vitals:
        status = self._controller.status()
        nodes = {
            name: NodeCounters(node["incarnation"], node["busy_seconds"], node.get("waiting_steps", 0))
            for name, node in status["nodes"].items()
            if name in status["serving"] and "busy_seconds" in node
        }
        return Vitals(nodes, status["batches_ahead"], self._intake.settings.max_batches_ahead)

    def steps(self) -> dict[str, NodeStep]:
        found = {}
        for name, node in self._controller.status()["nodes"].items():
            if node.get("step") is not None:
                step = StepStatus.of(node["step"])
                found[name] = NodeStep(str(step), step.overdue)
        return found

    def replace_node(self, node: str, why: str) -> None:
        self._controller.replace_node(node, why)

    def check_room(self, nodes: int) -> None:
        self._check_room(nodes)

    def add_nodes(self, nodes: Sequence[str]) -> None:
        self._controller.add_nodes(nodes, self._intake.settings.node_start_seconds)

    def remove_node(self, node: str) -> None:
        self._controller.remove_node(node)

    def begin(self, run: MigrationRun, transfer: str) -> None:
        self._controller.begin_migration(run, direct=transfer == "direct")

    def wait(self, run: MigrationRun, seconds: float) -> bool:
        try:
            self._controller.wait_for_migration(run, seconds)
        except TimeoutError:
            return False
        return True

    def go_on(self) -> None:
        self._controller.go_on_with_migration()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        with self._intake.gate:
            self._controller.wait_until_applied(self._controller.newest_batch)
            yield

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The stream ends first and starts last; what it brought is applied and saved before a node goes."""
        settings = self._intake.settings
        with self._stream.interrupted():
            self._controller.wait_until_applied(self._controller.newest_batch)
            self._controller.snapshot(settings.store_patience_seconds)
            self._controller.stop_nodes()
            try:
                yield
            except BaseException:
                self._controller.stop_nodes()  # back to the assignment that counts
                raise
            finally:
                self.start_nodes()

    def start_nodes(self) -> None:
        self._controller.start_nodes(self._intake.settings.node_start_seconds)
