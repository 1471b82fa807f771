"""Plan with copies: the best partition and its owners when nodes hold tasks that they do not own.

A node keeps in its new interval what it holds there, as owner or standby. If what nodes hold are intervals, none of
them within another, best matchings do not cross: for two nodes with l <= l' and r <= r' and two intervals J left of J',
exchanging (node, J') and (node', J), both with overlaps, loses nothing, because only the first node can hold more of J
and only the second more of J'. So the intervals get their nodes in one known order, and a dynamic program over
(intervals used, boundary, last node used) is exact.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from migration.kernels import Floats, Ints, label_partition
from migration.model.standbys import follower_shares
from migration.planning.problem import Problem

# A byte in the background weighs so much of one on the critical path: it decides between plans of the same cost only.
BACKGROUND_WEIGHT = 1e-9
# A byte that stays with its owner, beside one whose roles are switched: a switch moves nothing, but is not for nothing.
OWNER_WEIGHT = 1e-12
MOST_ORDERS = 64  # orders of nodes that are tried

_Masks = NDArray[np.bool_]


class Held(NamedTuple):
    """What the nodes that may remain hold: `tasks[i, j]` tells whether `nodes[i]` has task j, `own` who owns it."""

    nodes: tuple[str, ...]
    tasks: _Masks
    own: _Masks

    @classmethod
    def of(cls, problem: Problem) -> "Held":
        """What nodes hold that may remain or join; copies elsewhere are of no use."""
        names = (*problem.staying, *problem.joining)
        index = {name: place for place, name in enumerate(names)}
        own = np.zeros((len(names), problem.workload.tasks), np.bool_)
        for run in problem.current.runs:
            if (place := index.get(run.node, -1)) >= 0:
                own[place, run.start : run.stop] = True
        tasks = own.copy()
        for start, stop, followers in () if problem.standbys is None else problem.standbys.runs:
            for node in followers:
                if (place := index.get(node, -1)) >= 0:
                    tasks[place, start:stop] = True
        return cls(names, tasks, own)


class Span(NamedTuple):
    """A node in an order of nodes, and where the tasks lie that it may keep."""

    node: int
    start: int
    stop: int


class Choice(NamedTuple):
    """The best partition, the index of the node of every interval or -1, and whether nothing better exists."""

    boundaries: list[int]
    owners: list[int]
    is_proven: bool


def choose_partition(problem: Problem, first: Ints) -> Choice | None:
    """The partition and the owners that keep the most state in place; what standbys then lack breaks ties.

    None if no partition is balanced. O(orders * n' * band * nodes per window); one order for standbys on a line, two or
    four for standbys on a ring.
    """
    workload, held = problem.workload, Held.of(problem)
    state = workload.state if workload.total_state > 0 else np.ones(workload.tasks)
    weights = _weigh(held, state, problem)
    orders, is_proven = find_orders(held.tasks, first)
    parts = min(problem.node_count, workload.tasks)
    # All orders have the same nodes but for those that hold nothing: one array for all, contiguous by order.
    rows, starts, stops = np.array(orders, np.int64).reshape(len(orders), -1, 3).transpose(2, 0, 1).copy()
    found = [
        label_partition(workload.work_prefix, ordered, starts[number], stops[number], first, parts, problem.allow_idle)
        for number, ordered in enumerate(weights[rows])
    ]
    number = max(range(len(found)), key=lambda number: found[number][0])
    _, boundaries, labels = found[number]
    if not len(boundaries):
        return None
    if is_proven:
        owners = [orders[number][label - 1].node if label else -1 for label in labels.tolist()]
    else:
        owners = _match(weights[:, boundaries[1:]] - weights[:, boundaries[:-1]])
    return Choice(boundaries.tolist(), owners, is_proven)


def find_orders(tasks: _Masks, first: Ints) -> tuple[list[list[Span]], bool]:
    """The orders in which nodes may get intervals, and whether a best matching follows one of them.

    Nodes that hold one run of tasks, none of them within that of another, are in the order of their runs. Any other
    node, such as the last of a ring, which also follows the first, keeps something of one of its runs, so it is tried
    at each; or anywhere, if one interval may reach from run to run. If that makes too many orders, each of these nodes
    keeps to its longest run.
    """
    runs = _runs(tasks)
    line = _longest_chain([Span(node, *found[0]) for node, found in enumerate(runs) if len(found) == 1])
    in_line = {span.node for span in line}
    others = [[Span(node, *run) for run in found] for node, found in enumerate(runs) if found and node not in in_line]
    if not others:
        return [line], True
    reaching = [spans for spans in others if _may_reach(spans, first)]
    crossing = [spans for spans in others if not all(_is_chain(_arrange(line, [span])) for span in spans)]
    for moving in (reaching, [spans for spans in others if spans in reaching or spans in crossing]):
        fixed = [spans for spans in others if spans not in moving]
        count = math.prod(map(len, fixed)) * math.prod(len(in_line) + len(fixed) + 1 + n for n in range(len(moving)))
        if count <= MOST_ORDERS:
            chains = [_arrange(line, spans) for spans in product(*fixed)]
            if all(map(_is_chain, chains)):
                nodes = [spans[0].node for spans in moving]
                return [order for chain in chains for order in _insert(chain, nodes, tasks.shape[1])], True
    return [_arrange(line, [max(spans, key=lambda span: span.stop - span.start) for spans in others])], False


def _may_reach(spans: Sequence[Span], first: Ints) -> bool:
    """Whether an interval that is light enough has tasks of two runs."""
    return any(first[later.start + 1] < run.stop for run, later in pairwise(spans))


def _insert(order: list[Span], nodes: Sequence[int], tasks: int) -> Iterator[list[Span]]:
    """Insert nodes anywhere into an order."""
    if not nodes:
        yield order
        return
    for place in range(len(order) + 1):
        yield from _insert([*order[:place], Span(nodes[0], 0, tasks), *order[place:]], nodes[1:], tasks)


def _weigh(held: Held, state: Floats, problem: Problem) -> Floats:
    """For every node prefix sums of what it is worth to let it have a task.

    That is the state that it holds; less by far, what the neighbours hold that would be its standbys; and less again,
    what it owns. Neighbours are those that it has now, so where nodes join or leave between them it is an estimate.
    """
    staying = len(problem.staying)
    copies = held.tasks.astype(np.float64)
    worth = copies + OWNER_WEIGHT * held.own
    for offset, shares in follower_shares(problem.standby_count, staying).items():
        # Around the ring: the node at the offset of place 0, and so on.
        followed = np.concatenate((copies[offset % staying : staying], copies[: offset % staying]))
        worth[:staying] += followed * (BACKGROUND_WEIGHT * np.array(shares)[:, None])
    prefix = np.zeros((len(worth), len(state) + 1))
    worth *= state
    np.cumsum(worth, axis=1, out=prefix[:, 1:])
    return prefix


def _runs(tasks: _Masks) -> list[list[tuple[int, int]]]:
    """The runs [start, stop) of tasks that every node holds."""
    padded = np.zeros((len(tasks), tasks.shape[1] + 2), np.bool_)
    padded[:, 1:-1] = tasks
    nodes, edges = np.nonzero(padded[:, 1:] != padded[:, :-1])
    found: list[list[tuple[int, int]]] = [[] for _ in tasks]
    ends = edges.tolist()
    for node, start, stop in zip(nodes[::2].tolist(), ends[::2], ends[1::2], strict=True):
        found[node].append((start, stop))
    return found


def _longest_chain(spans: list[Span]) -> list[Span]:
    """As many spans as possible of which none lies within another, unless they start or end together. O(n^2)."""
    ordered = _arrange(spans)
    if _is_chain(ordered):
        return ordered
    chains: list[list[Span]] = []
    for span in ordered:
        before = max((chain for chain in chains if chain[-1].stop <= span.stop), key=len, default=[])
        chains.append([*before, span])
    return max(chains, key=len)


def _arrange(spans: Sequence[Span], more: Sequence[Span] = ()) -> list[Span]:
    return sorted([*spans, *more], key=itemgetter(1, 2))


def _is_chain(ordered: Sequence[Span]) -> bool:
    """Whether no span lies within another, for spans in the order of their starts."""
    stops = [span.stop for span in ordered]
    return stops == sorted(stops)


def _match(worth: Floats) -> list[int]:
    """The node of every interval in a heaviest matching of nodes (rows) and intervals, -1 for none."""
    from scipy.optimize import linear_sum_assignment  # here because it takes long to load

    nodes, intervals = linear_sum_assignment(worth, maximize=True)
    owners = [-1] * worth.shape[1]
    for node, interval in zip(nodes.tolist(), intervals.tolist(), strict=True):
        if worth[node, interval] > 0:
            owners[interval] = node
    return owners
