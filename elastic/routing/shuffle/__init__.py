"""Shuffling by execution time (paper 004): rows of stateless stages go to the node that will finish them first.

Nodes measure rows in an `ExecutionSketch`; senders make `CostEstimates` of the sketches of all nodes, and a scheduler
of `SCHEDULERS` chooses the node of each row. No I/O. `machines` has the state machines of the paper, and `simulation`
runs them.
"""

from elastic.routing.shuffle.estimates import CostEstimates, measure_slowness, pool
from elastic.routing.shuffle.forecast import NO_FORECAST, Forecast
from elastic.routing.shuffle.schedulers import SCHEDULERS, NodeLoads, RowScheduler, Scheduled, SenderShare
from elastic.routing.shuffle.sketch import ExecutionSketch, SketchShape

__all__ = [
    "NO_FORECAST",
    "SCHEDULERS",
    "CostEstimates",
    "ExecutionSketch",
    "Forecast",
    "NodeLoads",
    "RowScheduler",
    "Scheduled",
    "SenderShare",
    "SketchShape",
    "measure_slowness",
    "pool",
]
