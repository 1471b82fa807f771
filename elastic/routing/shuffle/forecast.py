"""Estimates that a sender uses for a batch: the seconds of its rows, and the backlogs of the nodes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from elastic.routing.shuffle.estimates import CostEstimates, measure_slowness, pool
from elastic.routing.shuffle.schedulers import ALONE, NodeLoads, SenderShare
from elastic.routing.shuffle.sketch import ExecutionSketch, Floats, Hashes
from elastic.routing.shuffle.uniformity import has_uniform_costs

_LEAST_SECONDS = 1e-6  # of a row: rows that take nothing would all go to one node
_CALL_SECONDS = 4e-4  # what one more call of an operator costs, with dividing the rows and one more table of results
_CALL_SHARE = 0.01  # of the time of the rows may be spent on calls that are made to measure
_UNIFORM_CALL_SHARE = 0.001  # while rows cost the same: two or three calls a second and node notice a change
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
    is_uniform: bool = False  # neither rows nor nodes differ, as far as is known

    @classmethod
    def from_sketches(cls, sketches: Mapping[str, ExecutionSketch]) -> Self:
        """Return what the sketches of the nodes tell, pooled: a key is known if any node has met it."""
        measured = {node: sketch for node, sketch in sketches.items() if sketch.rows}
        if not measured:
            return cls()
        of_nodes = list(measured.values())
        pooled = pool(of_nodes)
        slowness = measure_slowness(of_nodes, pooled)
        mean = float(pooled.seconds[0].sum()) / pooled.rows
        by_node = dict(zip(measured, slowness.tolist(), strict=True))
        is_uniform = has_uniform_costs(of_nodes, slowness)
        return cls(CostEstimates.from_sketch(pooled), by_node, mean_seconds=mean, is_uniform=is_uniform)

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

    def is_balanced_by_turns(self, loads: NodeLoads, rows: int) -> bool:
        """Return whether round-robin is as good as any choice for rows of this sender, and cheaper.

        Rows and nodes do not differ, and nodes have nearly as much left as each other: by a row of each sender, or by
        half of what each node gets now, since what they have left is known to a batch and not to a row.
        """
        if self.costs is None:
            return True
        share = 1 + rows / (2 * len(loads.seconds))
        return self.is_uniform and float(np.ptp(loads.seconds)) <= share * self.mean_seconds * self.share.senders

    @property
    def group_rows(self) -> int:
        """Number of rows of average cost that justify a call of their own, to measure their time."""
        if self.costs is None:
            return _FIRST_GROUP_ROWS
        call_share = _UNIFORM_CALL_SHARE if self.is_uniform else _CALL_SHARE
        worth = _CALL_SECONDS / (call_share * max(self.mean_seconds, _LEAST_SECONDS / _MOST_GROUP_ROWS))
        return min(_MOST_GROUP_ROWS, max(1, math.ceil(worth)))


NO_FORECAST = Forecast()
