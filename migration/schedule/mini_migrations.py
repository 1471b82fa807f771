"""Mini-migrations (paper 003, section 5.2): many short pauses instead of a long one."""

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from migration.errors import InvalidSchedule
from migration.model.moves import Move
from migration.schedule.by_count import schedule_by_count
from migration.schedule.transfers import Transfer, TransferPhase, check_moves


def schedule_mini_migrations(
    moves: Iterable[Move], tasks_per_node: int | None = None, size_per_node: float | None = None
) -> Iterator[TransferPhase]:
    """Whole moves, in phases in which no node sends, and none receives, more than the bounds allow.

    `tasks_per_node` bounds the tasks of a node that pause at a time, `size_per_node` their state. A single state above
    `size_per_node` must travel all the same: its source then sends, and its target receives, nothing else.

    With `tasks_per_node` alone the phases are as few as possible: the moves of the busiest direction of the busiest
    node, divided by the bound and rounded up. The fewest under `size_per_node` are NP-hard to find (bin packing):
    every move goes into the first phase that it fits into, larger moves before smaller ones. Without bounds there is
    one phase.
    """
    moves = check_moves(moves)
    most_tasks = None if tasks_per_node is None else _check_tasks(tasks_per_node)
    most_size = None if size_per_node is None else _check_size(size_per_node)
    if most_tasks is not None and most_size is None:
        return _merge(schedule_by_count(moves), most_tasks)
    return _first_fit(moves, most_tasks or math.inf, most_size or math.inf)


def _merge(phases: Iterator[TransferPhase], count: int) -> Iterator[TransferPhase]:
    """Every `count` phases as one; a node is in each of them at most once in each direction."""
    while group := list(islice(phases, count)):
        yield TransferPhase(tuple(transfer for phase in group for transfer in phase.transfers))


class _Capacity:
    """The state that each node may still send (or receive) in one mini-migration; unlimited for its first task."""

    def __init__(self, most_tasks: float, most_size: float) -> None:
        self._most_tasks = most_tasks
        self._most_size = most_size
        self._tasks: Counter[str] = Counter()
        self.left: defaultdict[str, float] = defaultdict(lambda: math.inf)

    def take(self, node: str, size: float) -> None:
        left = self.left[node] if self._tasks[node] else self._most_size
        self._tasks[node] += 1
        # Negative, so that not even an empty state fits.
        self.left[node] = left - size if self._tasks[node] < self._most_tasks else -1.0


def _first_fit(moves: Iterable[Move], most_tasks: float, most_size: float) -> Iterator[TransferPhase]:
    """First fit, done phase by phase: each takes what fits of the rest, in O(rest)."""
    rest = sorted(moves, key=lambda move: -move.size)
    while rest:
        sending, receiving = _Capacity(most_tasks, most_size), _Capacity(most_tasks, most_size)
        fitting, waiting = [], []
        for move in rest:
            if sending.left[move.source] >= move.size <= receiving.left[move.target]:
                sending.take(move.source, move.size)
                receiving.take(move.target, move.size)
                fitting.append(Transfer.whole(move))
            else:
                waiting.append(move)
        yield TransferPhase(tuple(fitting))
        rest = waiting


def _check_tasks(tasks_per_node: int) -> int:
    try:
        tasks = operator.index(tasks_per_node)
    except TypeError:
        tasks = 0
    if tasks < 1:
        raise InvalidSchedule(
            f"tasks_per_node={tasks_per_node!r} allows no move. Give a whole number >= 1, or None for no bound."
        )
    return tasks


def _check_size(size_per_node: float) -> float:
    try:
        size = float(size_per_node)
    except (TypeError, ValueError, OverflowError):
        size = math.nan
    if not 0 < size < math.inf:
        raise InvalidSchedule(
            f"size_per_node={size_per_node!r} is not a bound. Give a finite number above 0, or None for no bound."
        )
    return size
