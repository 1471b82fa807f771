"""From a plan by key to portions: which task every key becomes a guest of, and how many move with one batch."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elastic.operators.key_records import NO_RECORDS, RecordBytes
from elastic.routing import HOME, Groupings, KeyTargets, TableGrouping, to_tasks
from migration import Ownership
from storage.state import UnitId

if TYPE_CHECKING:
    from migration import KeyPlan


_NO_SIZES: Mapping[int, float] = MappingProxyType({})


class KeyPortion(NamedTuple):
    """Keys that move with one batch, and the bytes that this takes in the log: their states, and the records."""

    targets: KeyTargets
    size: float


class _Change(NamedTuple):
    """A key, the task that it becomes a guest of, and the state that leaves one node and comes to another."""

    hash: int
    task: int
    source: str
    target: str
    size: float


def make_portions(
    plan: "KeyPlan",
    stage: int,
    assignment: Ownership,
    groupings: Groupings,
    bytes_per_node: float,
    sizes: Mapping[int, float] = _NO_SIZES,
    records: RecordBytes = NO_RECORDS,
) -> list[KeyPortion]:
    """Return the portions that bring about a plan for the keys of a stage.

    A key that moves becomes a guest of a task on its target node, or goes home if its own task is there. Entries of the
    table that lead to the node of the key's own task are removed with the first portions: the plan does not know of
    them, since these keys stay on their node, but their states, of these `sizes` by hash, pass through the log too. In
    one portion a node parts with or gets at most `bytes_per_node`, or one key that is larger.
    """
    moving = frozenset(plan.moves.hashes.tolist())
    changes = [*_clean(stage, assignment, groupings, moving, sizes), *_move(plan, assignment)]
    portions = [_to_portion(stage, portion) for portion in _cut(changes, bytes_per_node)]
    return [
        KeyPortion(targets, size + measure_overhead(targets, assignment, groupings, records))
        for targets, size in portions
    ]


def measure_overhead(targets: KeyTargets, assignment: Ownership, groupings: Groupings, records: RecordBytes) -> float:
    """Return the bytes that moves take in the log besides the states of the keys."""
    orders = targets.orders(groupings)
    sources = [assignment.owners[UnitId.from_number(source).task] for source in orders]
    units = [np.unique(order.targets).tolist() for order in orders.values()]
    pairs = sum(map(len, units))
    by_node = {(node, unit) for node, found in zip(sources, units, strict=True) for unit in found}
    return records.node * len(set(sources)) + records.target * len(by_node) + records.pair * pairs


def _clean(
    stage: int, assignment: Ownership, groupings: Groupings, moving: Set[int], sizes: Mapping[int, float]
) -> Iterator[_Change]:
    """Yield the keys of the table that are on the node of their own task and stay there."""
    grouping = groupings[stage]
    if not isinstance(grouping, TableGrouping):
        return
    protected = frozenset(grouping.protected)
    for hashed, task in grouping.table:
        node = assignment.owners[task]
        if hashed in protected and task == hashed % groupings.tasks:
            continue  # it needs its entry, to be among guests
        if hashed not in moving and node == assignment.owners[hashed % groupings.tasks]:
            yield _Change(hashed, HOME, node, node, sizes.get(hashed, 0.0))


def _move(plan: "KeyPlan", assignment: Ownership) -> Iterator[_Change]:
    homes = to_tasks(plan.moves.hashes, assignment.tasks).tolist()
    tasks = {node: assignment.tasks_of(node) for node in plan.nodes}
    for move, home in zip(plan.moves, homes, strict=True):
        hosts = tasks[move.target]
        # Any task of the node will do. Keys that leave a unit for a node stay together, since every part has its cost.
        task = HOME if assignment.owners[home] == move.target else hosts[home % len(hosts)]
        yield _Change(move.hash, task, move.source, move.target, move.size)


def _cut(changes: Iterable[_Change], bytes_per_node: float) -> Iterator[list[_Change]]:
    portion: list[_Change] = []
    sent: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    for change in changes:
        fullest = max(sent[change.source], received[change.target])
        if portion and fullest and fullest + change.size > bytes_per_node:
            yield portion
            portion, sent, received = [], defaultdict(float), defaultdict(float)
        portion.append(change)
        sent[change.source] += change.size
        received[change.target] += change.size
    if portion:
        yield portion


def _to_portion(stage: int, changes: list[_Change]) -> KeyPortion:
    hashes, tasks, _, _, sizes = zip(*changes, strict=True)
    return KeyPortion(KeyTargets(stage, np.array(hashes, np.int64), np.array(tasks, np.int64)), sum(sizes))
