"""Partial grouping (paper 001): the rows of a key go to several tasks on different nodes, to whichever has less to do.

Every key has two choices: the task of its hash, and by an independent hash a task of another node. A row goes to the
one whose node got fewer rows so far (PKG). A *head* key, with more than 1/(5 n) of all rows for n nodes, may go to any
node, and goes to the one with the fewest rows (W-Choices). Only where a row goes depends on load; what becomes of it
does not, and the unit that was chosen is in the log. So estimates may be wrong, lost or different in every sender.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from elastic import threads
from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.groupings import Hashes, PartialGrouping
from elastic.routing.hashing import is_among, to_tasks
from elastic.routing.key_counter import KeyCounter
from elastic.routing.node_tasks import Integers, NodeTasks
from elastic.routing.routing import Routing
from elastic.routing.unit_numbers import UnitNumbers
from migration.model.mixing import mix_numbers
from storage.state import UnitId

HEAD_FACTOR = 5  # a key of more than 1/(5 n) of all rows is of the head
_COUNTERS = 10_000  # of a sender, for head keys: an error of a tenth of the threshold with 50 nodes
_MOST_HALVINGS = 60  # nothing is left after them

Loads = npt.NDArray[np.float64]


class SplitEstimates:
    """Estimates of one partial stage that the senders of a process share: rows by node and by key, across batches.

    Both are halved every `half_life_seconds`. Thread-safe.
    """

    def __init__(self, half_life_seconds: float, clock: Callable[[], float]) -> None:
        self.loads: Loads = np.zeros(0)
        self._half_life_seconds = half_life_seconds
        self._clock = clock
        self._nodes: tuple[str, ...] = ()
        self._counter = KeyCounter(_COUNTERS)
        self._since = clock()
        self._lock = threads.Lock()

    def choose(self, hashes: Hashes, tasks: NodeTasks, *, splits_tail: bool) -> Integers:
        """Return the task of each row, and count the rows; there are at least two nodes."""
        with self._lock:
            self._age()
            self._follow(tasks.names)
            is_head = self._find_head(hashes, tasks.nodes)
            return choose_tasks(hashes, is_head, tasks, self.loads, splits_tail=splits_tail)

    def _age(self) -> None:
        halvings = int((self._clock() - self._since) / self._half_life_seconds)
        self._since += halvings * self._half_life_seconds
        for _ in range(min(halvings, _MOST_HALVINGS)):
            self.loads /= 2
            self._counter.halve()

    def _follow(self, nodes: tuple[str, ...]) -> None:
        """Begin with equal loads when nodes join or leave: a new one must not get all rows until it has as many."""
        if nodes != self._nodes:
            self._nodes, self.loads = nodes, np.zeros(len(nodes))

    def _find_head(self, hashes: Hashes, nodes: int) -> npt.NDArray[np.bool_]:
        """Count the rows and return which are of a head key."""
        self._counter.add(hashes)
        least = self._counter.rows // (HEAD_FACTOR * nodes) + 1
        return is_among(hashes, self._counter.counts(least).hashes)


class SplitPlacer:
    """Chooses the units of rows of a partial stage by the estimates of this process."""

    group_rows = 0
    seconds: Mapping[str, float] = MappingProxyType({})

    def __init__(self, grouping: PartialGrouping, routing: Routing, stage: int, estimates: SplitEstimates) -> None:
        self._splits_tail = grouping.splits == "all"
        self._routing = routing
        self._stage = stage
        self._tasks = NodeTasks.of(routing.assignment)
        self._estimates = None if grouping.splits == "none" or self._tasks.nodes == 1 else estimates

    def unit_numbers(self, hashes: Hashes) -> UnitNumbers:
        if self._estimates is None:
            return self._routing.unit_numbers(hashes, self._stage)
        chosen = self._estimates.choose(hashes, self._tasks, splits_tail=self._splits_tail)
        return chosen + UnitId(self._stage, 0).number


def choose_tasks(
    hashes: Hashes, is_head: npt.NDArray[np.bool_], tasks: NodeTasks, loads: Loads, *, splits_tail: bool
) -> Integers:
    """Return the task of each row, and add the rows to the loads of the nodes; there are at least two nodes.

    Rows are placed one after the other, so each sees the load of those before it. O(rows + head rows * nodes).
    """
    homes = to_tasks(hashes, len(tasks.owners))
    mixed = mix_numbers(hashes.view(np.uint64))
    first = tasks.owners[homes]
    others = (mixed & np.uint64(0xFFFF_FFFF)) % np.uint64(tasks.nodes - 1)
    second = (first + 1 + others.astype(np.int64)) % tasks.nodes if splits_tail else first
    chosen = choose_nodes(first, second, is_head, loads)
    is_away = chosen != first
    homes[is_away] = tasks.task_on(chosen[is_away], mixed[is_away])
    return homes


def choose_nodes(first: Integers, second: Integers, is_head: npt.NDArray[np.bool_], loads: Loads) -> Integers:
    """Return the node of each row, and add the rows to `loads`; a tie goes to the first choice, or the first node."""
    kernel = load_compiled("compiled_partial", "choose_nodes")
    if kernel is None:
        return choose_one_by_one(first, second, is_head, loads)
    chosen = np.empty(len(first), np.int64)
    kernel(as_read_only(first), as_read_only(second), as_read_only(is_head), loads, chosen)
    return chosen


def choose_one_by_one(first: Integers, second: Integers, is_head: npt.NDArray[np.bool_], loads: Loads) -> Integers:
    """Do the same without a compiler: a million rows take most of a second."""
    rows_of = loads.tolist()
    chosen = []
    for one, other, may_go_anywhere in zip(first.tolist(), second.tolist(), is_head.tolist(), strict=True):
        node = other if rows_of[other] < rows_of[one] else one
        if may_go_anywhere:
            node = rows_of.index(min(rows_of))
        rows_of[node] += 1.0
        chosen.append(node)
    loads[:] = rows_of
    return np.array(chosen, np.int64)


def load() -> None:
    """Load the compiled loop, or compile it into its cache."""
    one = np.zeros(1, np.int64)
    choose_nodes(one, one, one.astype(np.bool_), np.zeros(1))
