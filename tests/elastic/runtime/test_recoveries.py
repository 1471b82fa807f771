"""What is told about losses."""

import threading
import time

from elastic.runtime.controller.recoveries import Recoveries
from elastic.runtime.protocol import CaughtUp
from tests.elastic.runtime.local_job import start_local_job


def test_a_node_that_came_back_is_told_once_with_what_it_repeated() -> None:
    recoveries = Recoveries()
    recoveries.lost("node-1", "its process died")
    recoveries.lost("node-1", "its process died again")
    for _ in range(2):
        recoveries.caught_up(CaughtUp("node-1", "node-1.1.1", 8, 70))
    [told] = recoveries.done
    assert (told.node, told.reason, told.units, told.replayed_rows) == ("node-1", "its process died again", 8, 70)
    assert recoveries.losses == 2


def test_a_lost_node_that_has_left_does_not_come_back_when_another_gets_its_name() -> None:
    recoveries = Recoveries()
    recoveries.lost("node-1", "its process died")
    recoveries.left("node-1")
    recoveries.caught_up(CaughtUp("node-1", "node-1.1.1", 8, 0))
    assert not recoveries.done
    assert recoveries.losses == 1


class ObservedRecoveries(Recoveries):
    """Remembers which threads changed it."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()

    def lost(self, node: str, reason: str) -> None:
        self.threads.add(threading.current_thread().name)
        super().lost(node, reason)

    def caught_up(self, report: CaughtUp) -> None:
        self.threads.add(threading.current_thread().name)
        super().caught_up(report)


def test_only_the_controllers_thread_writes_down_losses_and_recoveries() -> None:
    local = start_local_job(nodes=2)
    try:
        local.controller.recoveries = observed = ObservedRecoveries()
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        lost = next(iter(local.launcher.nodes))
        local.launcher.cancel(lost)
        ends = time.monotonic() + 20
        while not observed.done and time.monotonic() < ends:
            time.sleep(0.01)
        [recovery] = local.job.status().recoveries
        assert lost.startswith(recovery["node"])
        assert observed.threads == {"controller"}
    finally:
        local.close()
