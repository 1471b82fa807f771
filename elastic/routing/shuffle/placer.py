"""Shuffle grouping (paper 004): any task may take a row; a scheduler chooses the node that will be done with it first.

A batch is the epoch of synchronisation: every sender starts it from the same forecast of the driver, and what it has
scheduled since is forgotten with the batch. The unit that was chosen is in the log, so a replay never chooses again,
and a wrong forecast costs balance, not exactness.
"""

from dataclasses import replace

import numpy as np

from elastic.routing.groupings import Hashes, ShuffleGrouping
from elastic.routing.node_tasks import NodeTasks
from elastic.routing.routing import Routing
from elastic.routing.shuffle.forecast import Forecast
from elastic.routing.shuffle.schedulers import SCHEDULERS, NodeLoads, RowScheduler, schedule_round_robin
from elastic.routing.shuffle.sketch import Floats
from elastic.routing.unit_numbers import UnitNumbers
from migration.model.mixing import mix_numbers
from storage.state import UnitId


class ShufflePlacer:
    """Chooses the units of the rows that one sender sends to one stage in one batch.

    Rows of a cost key go to one task of the chosen node, so that the node can measure them together; to which one
    depends on the batch, so that all tasks of a node get the same work in the long run.
    """

    def __init__(self, grouping: ShuffleGrouping, routing: Routing, stage: int, forecast: Forecast) -> None:
        self._schedule = SCHEDULERS[grouping.scheduler]
        self._forecast = forecast
        self._tasks = NodeTasks.of(routing.assignment)
        self._loads = forecast.loads(self._tasks.names)
        self._first = UnitId(stage, 0).number
        self._rows = 0
        self._added: Floats = np.zeros(self._tasks.nodes)
        self.group_rows = forecast.group_rows if grouping.is_measured else 0

    @property
    def seconds(self) -> dict[str, float]:
        """The expected seconds of all rows so far, by node; empty while nothing is known of costs."""
        if self._forecast.costs is None:
            return {}
        return dict(zip(self._tasks.names, (self._added * self._loads.slowness).tolist(), strict=True))

    def unit_numbers(self, hashes: Hashes) -> UnitNumbers:
        forecast, tasks = self._forecast, self._tasks
        if forecast.is_balanced_by_turns(self._loads, len(hashes)):
            costs = np.full(len(hashes), forecast.mean_seconds)
            schedule: RowScheduler = schedule_round_robin
        else:
            costs, schedule = forecast.estimate(hashes), self._schedule
        # Ties go to another node in every batch, and in the middle of a batch turns continue where they were.
        turn = (forecast.batch + self._rows) % tasks.nodes
        turned = NodeLoads(np.roll(self._loads.seconds, -turn), np.roll(self._loads.slowness, -turn))
        scheduled = schedule(costs, turned, forecast.share)
        nodes = (scheduled.nodes + turn) % tasks.nodes
        self._loads = replace(self._loads, seconds=np.roll(scheduled.loads, turn))
        self._added += np.bincount(nodes, costs, tasks.nodes)
        self._rows += len(hashes)
        mixed = mix_numbers(hashes.view(np.uint64)) + (np.uint64(forecast.batch) << np.uint64(32))
        return tasks.task_on(nodes, mixed) + self._first
