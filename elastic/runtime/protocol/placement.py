"""Where units are: who owns each, where senders bring its rows, and states that were released on their way."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from elastic.routing import IntervalRouting, Routing
from elastic.routing.slots import task_of_slot
from migration import ScatteredAssignment
from storage.state import StateRef


class ReleasedState(NamedTuple):
    """A state on its way; `source` is the node that offers it, if one does."""

    ref: StateRef
    source: str | None


class Placement:
    """The committed routing, and how things are while units move.

    Every unit has one owner: the node whose reports about it count. It changes when the new owner is told to take the
    unit over; the committed routing follows. Rows are brought to where a unit goes as soon as that is known.

    Invariant: a released state is in the store, or its source lives. What only a lost node had is not here.
    """

    def __init__(self, routing: Routing, slots: frozenset[int]) -> None:
        self.committed = routing
        self._owners = dict.fromkeys(slots, "")
        self._destinations: dict[int, str] = {}
        self._released: dict[int, ReleasedState] = {}
        self._stored: dict[int, str] = {}  # by slot: the key of its released state, once that is in the store
        self._installed: set[int] = set()  # slots that have arrived
        self.reset()

    def owners(self) -> list[str]:
        """Nodes that have units."""
        return sorted(set(self._owners.values()))

    def slots_on(self, node: str) -> list[int]:
        return sorted(slot for slot, owner in self._owners.items() if owner == node)

    def slots_of_tasks(self, tasks: Iterable[int]) -> list[int]:
        """Of all stages."""
        wanted = set(tasks)
        return sorted(slot for slot in self._owners if task_of_slot(slot) in wanted)

    def begin_move(self, slots: Iterable[int], target: str) -> None:
        self._destinations.update(dict.fromkeys(slots, target))

    def is_leaving(self, slot: int, node: str) -> bool:
        """Whether the unit is on its way from that node, which still owns it."""
        return slot in self._destinations and self._owners[slot] == node

    def released(self, source: str, states: Iterable[StateRef], stored: bool) -> None:
        for ref in states:
            self._released[ref.unit.task] = ReleasedState(ref, None if stored else source)
            if stored:
                self.stored(ref)

    def stored(self, ref: StateRef) -> None:
        """May be heard before the release itself, or when nobody moves the unit any more."""
        if ref.unit.task in self._destinations:
            self._stored[ref.unit.task] = ref.key

    def released_state(self, slot: int) -> ReleasedState | None:
        return self._released.get(slot)

    def lost(self, node: str) -> None:
        """What only that node had is gone, and so is what had arrived there."""
        self._installed.difference_update(self.slots_on(node))
        for slot, (ref, source) in list(self._released.items()):
            if source == node and self._stored.get(slot) == ref.key:
                self._released[slot] = ReleasedState(ref, None)
            elif source == node:
                del self._released[slot]

    def installed(self, slots: Iterable[int]) -> list[int]:
        """Tasks that have arrived with all their units."""
        arrived = set(slots)
        self._installed |= arrived & set(self._destinations)
        tasks = sorted({task_of_slot(slot) for slot in arrived})
        return [task for task in tasks if self._installed.issuperset(self.slots_of_tasks([task]))]

    def give(self, slots: Iterable[int], owner: str) -> None:
        for slot in slots:
            if self._owners[slot] != owner:
                self._owners[slot] = owner
                self._installed.discard(slot)

    def forget_move(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._destinations.pop(slot, None)
            self._released.pop(slot, None)
            self._stored.pop(slot, None)
            self._installed.discard(slot)

    def commit(self, routing: Routing) -> None:
        self.committed = routing

    def reset(self) -> None:
        """As the committed routing says; nothing moves."""
        self.forget_move(list(self._owners))
        self._owners = {slot: self.committed.owners(slot)[0] for slot in self._owners}

    def route(self) -> Routing:
        """Where senders should bring rows now."""
        if not self._destinations or not isinstance(self.committed, IntervalRouting):
            return self.committed
        assignment = self.committed.assignment
        owners = list(assignment.owners)
        for slot, node in self._destinations.items():
            owners[task_of_slot(slot)] = node
        nodes = list(dict.fromkeys((*assignment.nodes, *owners)))
        return replace(self.committed, assignment=ScatteredAssignment.of_owners(owners, nodes))
