"""What is told about losses."""

from elastic.runtime.controller.recoveries import Recoveries


def test_a_node_that_came_back_is_told_once_with_what_it_repeated() -> None:
    recoveries = Recoveries()
    recoveries.lost("node-1", "its process died")
    recoveries.lost("node-1", "its process died again")
    for _ in range(2):
        recoveries.caught_up({"node": "node-1", "units": 8, "replayed_rows": 70})
    [told] = recoveries.done
    assert (told.node, told.reason, told.units, told.replayed_rows) == ("node-1", "its process died again", 8, 70)
    assert recoveries.losses == 2


def test_a_lost_node_that_has_left_does_not_come_back_when_another_gets_its_name() -> None:
    recoveries = Recoveries()
    recoveries.lost("node-1", "its process died")
    recoveries.left("node-1")
    recoveries.caught_up({"node": "node-1", "units": 8, "replayed_rows": 0})
    assert not recoveries.done
    assert recoveries.losses == 1
