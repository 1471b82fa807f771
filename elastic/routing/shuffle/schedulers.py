"""Schedulers: which node takes each row of a stateless stage. Any node will do, so the choice is one of load.

- `round-robin`: the same number of rows for every node, regardless of their cost.
- `posg`: each row in turn to the node that would finish it first, by estimates (paper 004). Its makespan is at most
  2 - 1/k times the best possible one, if estimates are exact and nodes are equal.
- `posg-batch`: the rows of a batch are known, so the longest come first; at most 4/3 - 1/(3k) times the best.

With exact costs instead of estimates, these are the bound that the paper calls Full Knowledge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from elastic.errors import InvalidJob
from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.shuffle.sketch import Floats

Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NodeLoads:
    """The estimated seconds until each node has finished what it has, and how slow it is; paper: C hat.

    Invariant: one or more nodes, a finite load and a positive, finite slowness for each.
    """

    seconds: Floats
    slowness: Floats

    def __post_init__(self) -> None:
        fits = self.seconds.shape == self.slowness.shape and self.seconds.ndim == 1 and len(self.seconds)
        if not fits or not np.isfinite([self.seconds, self.slowness]).all() or self.slowness.min() <= 0:
            raise InvalidJob(
                f"the loads {self.seconds} do not fit nodes with the slowness {self.slowness}. Give every node a "
                "finite load, and a slowness above 0; 1 is average."
            )

    @classmethod
    def idle(cls, nodes: int) -> "NodeLoads":
        return cls(np.zeros(nodes), np.ones(nodes))


@dataclass(frozen=True)
class SenderShare:
    """One of several senders that schedule rows of a batch without asking each other.

    All start from the same loads. Each expects the others to do as it does, so a row that it sends counts `senders`
    times. Ties are broken from a different node on by each, or the first rows of all would meet at one node.
    """

    sender: int = 0
    senders: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.sender < self.senders:
            raise InvalidJob(
                f"there is no sender {self.sender} among {self.senders}. Number senders from 0 to {self.senders - 1}."
            )

    def first_node(self, nodes: int) -> int:
        """Return the node that this sender prefers among equals: the senders' are spread evenly."""
        return self.sender * nodes // self.senders % nodes


ALONE = SenderShare()


class Scheduled(NamedTuple):
    """The node of each row, and the loads that this sender expects of the nodes afterwards."""

    nodes: Nodes
    loads: Floats


class RowScheduler(Protocol):
    """Chooses a node for each row of a batch from the expected seconds of all rows; deterministic and without state."""

    def __call__(self, costs: Floats, loads: NodeLoads, share: SenderShare = ALONE) -> Scheduled: ...


def schedule_round_robin(costs: Floats, loads: NodeLoads, share: SenderShare = ALONE) -> Scheduled:
    """Give rows to the nodes in turn."""
    count = len(loads.seconds)
    nodes = (np.arange(len(costs)) + share.first_node(count)) % count
    added = np.bincount(nodes, costs, count) * loads.slowness * share.senders
    return Scheduled(nodes, loads.seconds + added)


def schedule_greedily(costs: Floats, loads: NodeLoads, share: SenderShare = ALONE) -> Scheduled:
    """Give each row in turn to the node that would finish it first; O(k) per row."""
    kernel = load_compiled("shuffle.compiled_shuffle", "assign_rows")
    if kernel is None:
        return schedule_greedily_by_reference(costs, loads, share)
    nodes, after = np.empty(len(costs), np.int64), loads.seconds.copy()
    first = share.first_node(len(after))
    kernel(as_read_only(np.ascontiguousarray(costs)), as_read_only(loads.slowness * share.senders), first, after, nodes)
    return Scheduled(nodes, after)


def schedule_greedily_by_reference(costs: Floats, loads: NodeLoads, share: SenderShare = ALONE) -> Scheduled:
    """Do the same, row by row in Python: node = argmin of C + P w s, then C += P w s."""
    after, weights = loads.seconds.tolist(), (loads.slowness * share.senders).tolist()
    first = share.first_node(len(after))
    order = [*range(first, len(after)), *range(first)]
    nodes = np.empty(len(costs), np.int64)
    for row, cost in enumerate(costs.tolist()):
        node = min(order, key=lambda one: after[one] + cost * weights[one])
        after[node] += cost * weights[node]
        nodes[row] = node
    return Scheduled(nodes, np.array(after))


def schedule_longest_first(costs: Floats, loads: NodeLoads, share: SenderShare = ALONE) -> Scheduled:
    """Give rows to the node that would finish them first, the longest rows first and equal ones in order.

    Costs that differ by less than 1 % may count as equal: 16 bits of a float are sorted by NumPy's radix sort, ten
    times as fast as all of them.
    """
    order = np.argsort(~(costs.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), kind="stable")
    placed = schedule_greedily(costs[order], loads, share)
    nodes = np.empty(len(costs), np.int64)
    nodes[order] = placed.nodes
    return Scheduled(nodes, placed.loads)


ROUND_ROBIN, DEFAULT_SCHEDULER = "round-robin", "posg"
SCHEDULERS: Mapping[str, RowScheduler] = {
    ROUND_ROBIN: schedule_round_robin,
    DEFAULT_SCHEDULER: schedule_greedily,
    "posg-batch": schedule_longest_first,
}
