"""Partial grouping (paper 001): the rows of a key go to several tasks on different nodes, to whichever has less to do.

Every key has two choices: the task of its hash, and by an independent hash a task of another node. A row goes to the
one whose node got fewer rows so far (PKG). A *head* key, with more than 1/(5 n) of all rows for n nodes, may go to any
node, and goes to the one with the fewest rows (W-Choices). Only where a row goes depends on load; what becomes of it
does not, and the unit that was chosen is in the log. So estimates may be wrong, lost or different in every sender.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from elastic import threads
from elastic.routing.compiled_loops import as_read_only, load_compiled
from elastic.routing.groupings import HASH, Hashes, PartialGrouping
from elastic.routing.hashing import is_among, to_tasks
from elastic.routing.key_counter import KeyCounter
from elastic.routing.routing import Routing
from elastic.routing.unit_numbers import UnitNumbers
from migration import Ownership
from storage.state import UnitId

HEAD_FACTOR = 5  # a key of more than 1/(5 n) of all rows is of the head
HALF_LIFE_SECONDS = 10.0  # of load estimates: long enough to be of many rows, short enough to follow what changes
_COUNTERS = 10_000  # of a sender, for head keys: an error of a tenth of the threshold with 50 nodes
_MOST_HALVINGS = 60  # nothing is left after them

Integers = npt.NDArray[np.int64]
Loads = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodeTasks:
    """An assignment as arrays: the position of the owner by task, and the tasks of node i from `starts[i]` on."""

    owners: Integers
    tasks: Integers
    starts: Integers

    @classmethod
    def of(cls, assignment: Ownership) -> "NodeTasks":
        positions = {node: place for place, node in enumerate(dict.fromkeys(assignment.owners))}
        owners = np.array([positions[node] for node in assignment.owners], np.int64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners))])
        return cls(owners, np.argsort(owners, kind="stable"), starts)

    @property
    def nodes(self) -> int:
        return len(self.starts) - 1

    def task_on(self, nodes: Integers, mixed: npt.NDArray[np.uint64]) -> Integers:
        """Return for each row a task of the given node; the same one for the same key."""
        sizes = np.diff(self.starts)
        places = self.starts[nodes] + ((mixed >> np.uint64(32)) % sizes[nodes].astype(np.uint64)).astype(np.int64)
        tasks: Integers = self.tasks[places]
        return tasks


class UnitChooser:
    """Chooses the unit of every row that one process sends for one job.

    For a stage with partial grouping it keeps, across batches, how many rows each node got, and which keys have many;
    both are halved every `half_life_seconds`. Groupings that need no estimate are asked as ever. Thread-safe.
    """

    def __init__(
        self, half_life_seconds: float = HALF_LIFE_SECONDS, clock: Callable[[], float] = threads.monotonic
    ) -> None:
        self._half_life_seconds = half_life_seconds
        self._clock = clock
        self._estimates: dict[int, _Estimates] = {}  # by stage
        self._lock = threads.Lock()

    def unit_numbers(self, hashes: Hashes, routing: Routing, stage: int) -> UnitNumbers:
        """Return the unit number of each row, from the hash of its key."""
        grouping = routing.groupings[stage]
        if not isinstance(grouping, PartialGrouping) or grouping.splits == "none":
            return routing.unit_numbers(hashes, stage)
        tasks = _node_tasks(routing.assignment)
        if tasks.nodes == 1:
            return HASH.unit_numbers(hashes, stage, routing.groupings.tasks)
        with self._lock:
            estimates = self._estimates.setdefault(stage, _Estimates(self._clock()))
            estimates.age(self._clock(), self._half_life_seconds)
            estimates.follow(routing.assignment)
            is_head = estimates.find_head(hashes, tasks.nodes)
            chosen = choose_tasks(hashes, is_head, tasks, estimates.loads, splits_tail=grouping.splits == "all")
        return chosen + UnitId(stage, 0).number


class _Estimates:
    """What a sender knows of one stage: rows by node, and by key."""

    def __init__(self, now: float) -> None:
        self.loads: Loads = np.zeros(0)
        self._nodes: tuple[str, ...] = ()
        self._counter = KeyCounter(_COUNTERS)
        self._since = now

    def age(self, now: float, half_life_seconds: float) -> None:
        halvings = int((now - self._since) / half_life_seconds)
        self._since += halvings * half_life_seconds
        for _ in range(min(halvings, _MOST_HALVINGS)):
            self.loads /= 2
            self._counter.halve()

    def follow(self, assignment: Ownership) -> None:
        """Begin with equal loads when nodes join or leave: a new one must not get all rows until it has as many."""
        nodes = tuple(dict.fromkeys(assignment.owners))
        if nodes != self._nodes:
            self._nodes, self.loads = nodes, np.zeros(len(nodes))

    def find_head(self, hashes: Hashes, nodes: int) -> npt.NDArray[np.bool_]:
        """Count the rows and return which are of a head key."""
        self._counter.add(hashes)
        least = self._counter.rows // (HEAD_FACTOR * nodes) + 1
        return is_among(hashes, self._counter.counts(least).hashes)


def choose_tasks(
    hashes: Hashes, is_head: npt.NDArray[np.bool_], tasks: NodeTasks, loads: Loads, *, splits_tail: bool
) -> Integers:
    """Return the task of each row, and add the rows to the loads of the nodes; there are at least two nodes.

    Rows are placed one after the other, so each sees the load of those before it. O(rows + head rows * nodes).
    """
    homes = to_tasks(hashes, len(tasks.owners))
    mixed = mix(hashes)
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


def mix(hashes: Hashes) -> npt.NDArray[np.uint64]:
    """Return another hash of each hash, independent of its remainder: the finaliser of SplitMix64."""
    mixed = hashes.view(np.uint64) + np.uint64(0x9E37_79B9_7F4A_7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return mixed ^ (mixed >> np.uint64(31))


def load() -> None:
    """Load the compiled loop, or compile it into its cache."""
    one = np.zeros(1, np.int64)
    choose_nodes(one, one, one.astype(np.bool_), np.zeros(1))


@lru_cache(16)
def _node_tasks(assignment: Ownership) -> NodeTasks:
    return NodeTasks.of(assignment)
