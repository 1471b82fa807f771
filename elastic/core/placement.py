"""Where units are: who owns each, where senders bring its rows, and the states that were released on their way."""

from collections.abc import Iterable
from typing import NamedTuple

from elastic.core.ids import Task, UnitId
from elastic.routing import Routing
from migration import ScatteredAssignment
from storage.state import StateRef


class ReleasedState(NamedTuple):
    """A state on its way; `source` is the node that offers it, None if the store has it."""

    ref: StateRef
    source: str | None


class Placement:
    """The committed routing, and how it differs while units move.

    Every unit has one owner: the node whose reports about it are accepted. It changes when the driver tells the new
    owner to install the unit; the committed routing follows. Senders bring rows to the new owner once it is known.

    Invariant: a released state is in the store, or its source lives. What only a lost node had is not here.
    """

    def __init__(self, routing: Routing, units: frozenset[UnitId]) -> None:
        self.committed = routing
        self._owners = dict.fromkeys(units, "")
        self._destinations: dict[UnitId, str] = {}
        self._released: dict[UnitId, ReleasedState] = {}
        self._stored: dict[UnitId, str] = {}  # the key of its released state, once that is in the store
        self._installed: set[UnitId] = set()
        self._to_install: dict[str, set[UnitId]] = {}  # by target, until it is told
        self._route: Routing | None = None
        self._tasks: dict[str, tuple[Task, ...]] | None = None
        self.reset()

    def owners(self) -> list[str]:
        """Return the nodes that have units."""
        return sorted(set(self._owners.values()))

    def owner(self, unit: UnitId) -> str:
        return self._owners[unit]

    def units_on(self, node: str) -> list[UnitId]:
        return sorted(unit for unit, owner in self._owners.items() if owner == node)

    def tasks_by_node(self) -> dict[str, tuple[Task, ...]]:
        """Return the tasks that each node owns: the same object until that changes."""
        if self._tasks is None:
            found: dict[str, set[Task]] = {}
            for unit, owner in self._owners.items():
                found.setdefault(owner, set()).add(Task(unit.task))
            self._tasks = {node: tuple(sorted(tasks)) for node, tasks in found.items()}
        return self._tasks

    def units_of(self, tasks: Iterable[Task]) -> list[UnitId]:
        """Return the units of these tasks in all stages."""
        wanted = set(tasks)
        return sorted(unit for unit in self._owners if unit.task in wanted)

    def begin_move(self, units: Iterable[UnitId], target: str) -> None:
        self._destinations.update(dict.fromkeys(units, target))
        self._route = None

    def is_leaving(self, unit: UnitId, node: str) -> bool:
        """Whether the unit is on its way from that node, which still owns it."""
        return unit in self._destinations and self._owners[unit] == node

    def units_released(self, source: str, states: Iterable[StateRef], *, stored: bool) -> None:
        for ref in states:
            self._released[ref.unit] = ReleasedState(ref, None if stored else source)
            if stored:
                self.state_stored(ref)

    def state_stored(self, ref: StateRef) -> None:
        """Note that a released state is in the store. The report may overtake the release, or come after the move."""
        if ref.unit in self._destinations:
            self._stored[ref.unit] = ref.key

    def released_state(self, unit: UnitId) -> ReleasedState | None:
        return self._released.get(unit)

    def node_lost(self, node: str) -> None:
        """Forget what only that node had, and what had arrived there."""
        self._installed.difference_update(self.units_on(node))
        for unit, (ref, source) in list(self._released.items()):
            if source == node and self._stored.get(unit) == ref.key:
                self._released[unit] = ReleasedState(ref, None)
            elif source == node:
                del self._released[unit]

    def request_install(self, units: Iterable[UnitId], target: str) -> None:
        """Make the target the owner; it is told by the next `take_installs`."""
        self._to_install.setdefault(target, set()).update(units)
        for unit in units:
            if self._owners[unit] != target:
                self._owners[unit] = target
                self._installed.discard(unit)
                self._tasks = None

    def take_installs(self) -> dict[str, list[UnitId]]:
        """Return, once, the units that each target has to be told to install."""
        taken = {target: sorted(units) for target, units in self._to_install.items()}
        self._to_install.clear()
        return taken

    def units_installed(self, units: Iterable[UnitId]) -> list[Task]:
        """Return the tasks of these that have arrived with all their units."""
        arrived = set(units)
        self._installed |= arrived & set(self._destinations)
        tasks = sorted({Task(unit.task) for unit in arrived})
        return [task for task in tasks if self._installed.issuperset(self.units_of([task]))]

    def end_move(self, units: Iterable[UnitId]) -> None:
        for unit in units:
            self._destinations.pop(unit, None)
            self._released.pop(unit, None)
            self._stored.pop(unit, None)
            self._installed.discard(unit)
        self._route = None

    def commit(self, routing: Routing) -> None:
        self.committed = routing
        self._route = None

    def reset(self) -> None:
        """Return to the committed routing; nothing moves."""
        self.end_move(list(self._owners))
        self._to_install.clear()
        self._owners = {unit: self.committed.owners(unit)[0] for unit in self._owners}
        self._tasks = None

    def route(self) -> Routing:
        """Return where senders bring rows now: the same object until that changes."""
        if self._route is None:
            self._route = self._current_route()
        return self._route

    def _current_route(self) -> Routing:
        if not self._destinations:
            return self.committed
        assignment = self.committed.assignment
        owners = list(assignment.owners)
        for unit, node in self._destinations.items():
            owners[unit.task] = node
        nodes = list(dict.fromkeys((*assignment.nodes, *owners)))
        return self.committed.with_assignment(ScatteredAssignment.from_owners(owners, nodes), self.committed.epoch)
