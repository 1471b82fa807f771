"""What a sender expects of a batch: how long its rows will take, and what the nodes have left of earlier batches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from elastic.routing.shuffle.estimates import CostEstimates, measure_slowness, pool
from elastic.routing.shuffle.schedulers import ALONE, NodeLoads, SenderShare
from elastic.routing.shuffle.sketch import ExecutionSketch, Floats, Hashes

_LEAST_SECONDS = 1e-6  # of a row: rows that take nothing would all go to one node
_CALL_SECONDS = 4e-4  # what one more call of an operator costs, with dividing the rows and one more table of results
_CALL_SHARE = 0.01  # of the time of the rows may be spent on calls that are made to measure
_FIRST_GROUP_ROWS = 64  # while nothing is known: calls cost less than 2 us per row
_MOST_GROUP_ROWS = 1 << 30


@dataclass(frozen=True, eq=False)
class Forecast:
    """The expected seconds of rows by their cost key, and of each node until it is done with what it has.

    All senders of a batch get the same one, except for `share`. Without `costs`, while no node has measured a row, all
    rows count the same. Nodes that are not named are idle and of average speed.
    """

    costs: CostEstimates | None = None
    slowness: Mapping[str, float] = field(default_factory=dict)
    backlogs: Mapping[str, float] = field(default_factory=dict)
    batch: int = 0
    share: SenderShare = ALONE
    mean_seconds: float = 0.0  # of a row

    @classmethod
    def from_sketches(cls, sketches: Mapping[str, ExecutionSketch]) -> Self:
        """Return what the sketches of the nodes tell, pooled: a key is known if any node has met it."""
        measured = {node: sketch for node, sketch in sketches.items() if sketch.rows}
        if not measured:
            return cls()
        pooled = pool(list(measured.values()))
        slowness = measure_slowness(list(measured.values()), pooled)
        mean = float(pooled.seconds[0].sum()) / pooled.rows
        by_node = dict(zip(measured, slowness.tolist(), strict=True))
        return cls(CostEstimates.from_sketch(pooled), by_node, mean_seconds=mean)

    def of_sender(self, sender: int, senders: int) -> Self:
        """Return the forecast for one of several senders; numbers above that count begin again."""
        return replace(self, share=SenderShare(sender % senders, senders))

    def estimate(self, hashes: Hashes) -> Floats:
        """Return the expected seconds of each row."""
        if self.costs is None:
            return np.ones(len(hashes))
        return np.maximum(self.costs.estimate(hashes), _LEAST_SECONDS)

    def loads(self, nodes: Sequence[str]) -> NodeLoads:
        """Return the loads of these nodes at the beginning of the batch."""
        backlogs = [self.backlogs.get(node, 0.0) if self.costs is not None else 0.0 for node in nodes]
        return NodeLoads(np.array(backlogs), np.array([self.slowness.get(node, 1.0) for node in nodes]))

    @property
    def group_rows(self) -> int:
        """How many rows of average cost are worth a call of their own, to learn what they take."""
        if self.costs is None:
            return _FIRST_GROUP_ROWS
        worth = _CALL_SECONDS / (_CALL_SHARE * max(self.mean_seconds, _LEAST_SECONDS / _MOST_GROUP_ROWS))
        return min(_MOST_GROUP_ROWS, max(1, math.ceil(worth)))


NO_FORECAST = Forecast()
