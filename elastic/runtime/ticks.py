"""Time on an idle stream: while no rows come, the driver commits an empty batch when a processing-time timer is due."""

from elastic.runtime.controller import Controller
from elastic.runtime.controller.nodes import Nodes
from elastic.runtime.intake.batches import Intake


class Ticker:
    """Polled every heartbeat. A timer then fires at most about two heartbeats after it is due, with or without rows.

    Nodes tell in their heartbeats when their next timer is due. A tick is a batch without rows and without a batch of
    the source, so Spark's batch numbers and those of the job differ from the first tick on.
    """

    def __init__(self, controller: Controller, nodes: Nodes, intake: Intake) -> None:
        self._controller = controller
        self._nodes = nodes
        self._intake = intake

    def poll(self) -> None:
        if not self._controller.is_idle:
            return  # a batch is under way, and advances the time
        due_ms = self._nodes.next_timer_ms(self._controller.newest_batch)
        if due_ms is not None:
            self._intake.tick(due_ms)
