"""Losses of nodes, and how long it took to replace each."""

from elastic.core.messages import CaughtUp
from elastic.core.recoveries import Recoveries
from tests.elastic.driver.local_job import start_local_job, until


def test_a_node_that_recovered_is_recorded_once_with_what_it_replayed() -> None:
    recoveries = Recoveries()
    recoveries.node_lost("node-1", "its process died", 10.0, ["node-1"])
    recoveries.node_lost("node-1", "its process died again", 12.0, ["node-1"])
    for at in (15.0, 16.0):
        recoveries.caught_up(CaughtUp("node-1", "node-1.1.1", 8, 3, 70), at)
    [found] = recoveries.completed
    assert (found.node, found.reason, found.units, found.replayed_rows) == ("node-1", "its process died again", 8, 70)
    assert found.seconds == 5.0  # since the first loss
    assert recoveries.losses == 2


def test_a_lost_node_that_was_stopped_does_not_recover_when_another_gets_its_name() -> None:
    recoveries = Recoveries()
    recoveries.node_lost("node-1", "its process died", 10.0, ["node-1"])
    recoveries.node_stopped("node-1")
    recoveries.caught_up(CaughtUp("node-1", "node-1.1.1", 8), 12.0)
    assert not recoveries.completed
    assert recoveries.losses == 1


def test_a_lost_node_is_replaced_and_its_recovery_is_in_the_status() -> None:
    local = start_local_job(nodes=2)
    try:
        local.send(1, 2, 3, 4)
        local.job.process_all_available()
        lost = next(iter(local.launcher.incarnations))
        local.launcher.cancel(lost)
        until(lambda: local.status().recoveries, "the recovery")
        [recovery] = local.status().recoveries
        assert lost.startswith(recovery["node"])
        assert recovery["seconds"] > 0
        assert [local.job.state(key) for key in (1, 2, 3, 4)] == [1, 1, 1, 1]
    finally:
        local.close()
