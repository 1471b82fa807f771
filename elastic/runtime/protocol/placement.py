"""Where units are: who owns each, where senders bring its rows, and states that were released on their way."""

from collections.abc import Iterable
from dataclasses import replace

from elastic.routing import IntervalRouting, Routing
from elastic.routing.slots import task_of_slot
from migration import ScatteredAssignment
from storage.state import StateRef


class Placement:
    """The committed routing, and how things are while units move.

    Every unit has one owner: the node whose reports about it count. It changes when the new owner is told to take the
    unit over; the committed routing follows. Rows are brought to where a unit goes as soon as that is known.
    """

    def __init__(self, routing: Routing, slots: frozenset[int]) -> None:
        self.committed = routing
        self._owners = {slot: routing.owners(slot)[0] for slot in slots}
        self._destinations: dict[int, str] = {}
        self._released: dict[int, StateRef] = {}

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

    def released(self, states: Iterable[tuple[int, StateRef]]) -> None:
        self._released.update(states)

    def released_state(self, slot: int) -> StateRef | None:
        return self._released.get(slot)

    def give(self, slots: Iterable[int], owner: str) -> None:
        self._owners.update(dict.fromkeys(slots, owner))

    def forget_move(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._destinations.pop(slot, None)
            self._released.pop(slot, None)

    def commit(self, routing: Routing) -> None:
        self.committed = routing

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
