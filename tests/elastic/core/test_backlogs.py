"""When nodes will be done, and what rows cost, as the driver knows it."""

import numpy as np
import pytest

from elastic.core.backlogs import Backlogs
from elastic.core.ids import Batch
from elastic.core.messages import ApplyStep, Heartbeat, StepApplied, decode_message, encode_message
from elastic.core.stage_costs import SHAPE, NodeCosts, StageCosts, forecast_stage
from elastic.core.steps import Position, Step
from elastic.routing.shuffle import ExecutionSketch
from storage.state import BatchTime


def applied(node: str, batch: int) -> StepApplied:
    return StepApplied(node, f"{node}.0", Position(Batch(batch), 0), ())


def test_batches_add_up_and_reports_correct() -> None:
    backlogs = Backlogs()
    backlogs.batch_logged(Batch(0), {"a": 2.0, "b": 1.0}, now=10.0)
    backlogs.batch_logged(Batch(1), {"a": 1.0, "b": 1.0}, now=11.0)
    assert backlogs.ends == {"a": 13.0, "b": 12.0}
    backlogs.step_applied(applied("a", 0), now=15.0)  # it was slower than expected
    assert backlogs.ends == {"a": 16.0, "b": 12.0}
    backlogs.step_applied(applied("b", 1), now=11.5)
    assert backlogs.ends == {"a": 16.0, "b": 11.5}


def test_an_idle_node_begins_now() -> None:
    backlogs = Backlogs()
    backlogs.batch_logged(Batch(0), {"a": 1.0}, now=0.0)
    backlogs.batch_logged(Batch(1), {"a": 1.0}, now=5.0)
    assert backlogs.ends == {"a": 6.0}


def test_reports_of_unknown_nodes_and_repeated_ones_change_nothing() -> None:
    backlogs = Backlogs()
    backlogs.batch_logged(Batch(3), {"a": 1.0}, now=0.0)
    ends = backlogs.ends
    backlogs.step_applied(applied("b", 3), now=9.0)
    backlogs.step_applied(applied("a", 2), now=9.0)
    backlogs.batch_logged(Batch(4), {}, now=9.0)
    backlogs.node_lost("b")
    assert backlogs.ends is ends


def test_a_lost_node_is_forgotten() -> None:
    backlogs = Backlogs()
    backlogs.batch_logged(Batch(0), {"a": 1.0, "b": 1.0}, now=0.0)
    backlogs.node_lost("a")
    assert backlogs.ends == {"b": 1.0}
    backlogs.step_applied(applied("a", 0), now=2.0)
    assert backlogs.ends == {"b": 1.0}


def sketch_of(key: int, seconds: float, rows: int = 10) -> ExecutionSketch:
    sketch = ExecutionSketch(SHAPE)
    sketch.add(np.full(rows, key, np.int64), np.full(rows, seconds))
    return sketch


def test_costs_travel_in_messages() -> None:
    costs = StageCosts.of(1, sketch_of(7, 0.5))
    beat = Heartbeat("a", "a.0", costs=(costs,))
    received = decode_message(encode_message(beat))
    assert received == beat
    sketch = received.costs[0].sketch
    assert (sketch.frequencies == sketch_of(7, 0.5).frequencies).all()
    assert (sketch.seconds == sketch_of(7, 0.5).seconds).all()
    step = Step(Position(Batch(0), 0), True, (), BatchTime(0, 0, None, None))
    message = ApplyStep(1, step, None, (NodeCosts("a", (costs,)),))  # type: ignore[arg-type]
    assert decode_message(encode_message(message)) == message


def test_costs_are_decoded_once_and_cannot_be_changed() -> None:
    costs = StageCosts.of(1, sketch_of(7, 0.5))
    assert costs.sketch is costs.sketch
    for matrix in (costs.sketch.frequencies, costs.sketch.seconds):
        with pytest.raises(ValueError, match="read-only"):
            matrix[:] = 0
    forecast_stage([NodeCosts("a", (costs,)), NodeCosts("b", (costs,))], 1)
    assert costs.sketch.rows == 10
    assert costs == StageCosts.of(1, sketch_of(7, 0.5))


def test_the_bytes_of_costs_are_bounded() -> None:
    sketch = ExecutionSketch(SHAPE)
    keys = np.random.default_rng(0).integers(-(2**63), 2**63, 200_000)
    sketch.add(keys, np.random.default_rng(1).random(len(keys)))
    assert len(StageCosts.of(0, sketch).encoded) <= 22_000
    sketch.frequencies[:] = 2**40  # more rows than 32 bits count
    assert StageCosts.of(0, sketch).sketch.frequencies.max() == 2**32 - 1


def test_a_forecast_is_of_one_stage_and_all_nodes() -> None:
    costs = [
        NodeCosts("a", (StageCosts.of(0, sketch_of(7, 0.5)), StageCosts.of(1, sketch_of(7, 9.0)))),
        NodeCosts("b", (StageCosts.of(0, sketch_of(8, 0.25)),)),
    ]
    forecast = forecast_stage(costs, 0)
    assert forecast.estimate(np.array([7, 8])).tolist() == pytest.approx([0.5, 0.25])
    assert set(forecast.slowness) == {"a", "b"}
    assert forecast_stage(costs, 2).costs is None
