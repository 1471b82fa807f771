"""Where units are: who owns each, which nodes follow it, where senders bring its rows, and states on their way."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    owner to install the unit; the committed routing follows. Senders bring rows to the new owner once it is known, and
    to the nodes that follow the unit as standbys.

    Invariant: a released state is in the store, or its source lives. What only a lost node had is not here. No node
    owns and follows the same unit: an owner that installs a unit stops being its standby.
    """

    def __init__(self, routing: Routing, units: frozenset[UnitId]) -> None:
        self.committed = routing
        self._owners = dict.fromkeys(units, "")
        self._by_task: dict[int, list[UnitId]] = {}
        for unit in units:
            self._by_task.setdefault(unit.task, []).append(unit)
        self._destinations: dict[UnitId, str] = {}
        self._released: dict[UnitId, ReleasedState] = {}
        self._stored: dict[UnitId, str] = {}  # the key of its released state, once that is in the store
        self._installed: set[UnitId] = set()
        self._to_install: dict[str, set[UnitId]] = {}  # by target, until `take_installs`
        self._standbys: dict[str, dict[UnitId, bool]] = {}  # by node: whether each has caught up
        self._standby_view: Mapping[str, tuple[UnitId, ...]] | None = None
        self._prepared: dict[UnitId, str] = {}  # targets that follow units which are about to move there
        self.is_committing = False  # an assignment is on its way into the store: the next one waits, to include it
        self._route: Routing | None = None
        self._tasks: dict[str, tuple[Task, ...]] | None = None
        self.reset()

    def owners(self) -> list[str]:
        """Return the nodes that own units."""
        return sorted(set(self._owners.values()))

    def hosts_of_units(self) -> list[str]:
        """Return the nodes that take steps: owners, and those that follow."""
        return sorted({*self._owners.values(), *self.following()})

    def settled_owners(self) -> tuple[str, ...]:
        """Return the owner of every task, and the committed one where the task moves."""
        committed = self.committed.assignment.owners
        units = (UnitId(0, task) for task in range(len(committed)))
        return tuple(committed[unit.task] if unit in self._destinations else self._owners[unit] for unit in units)

    def count_units(self) -> Mapping[str, int]:
        """Return the number of units that each node owns."""
        return Counter(self._owners.values())

    def tasks_of(self, node: str) -> list[Task]:
        """Return the tasks of which a node owns a unit."""
        return sorted({Task(unit.task) for unit, owner in self._owners.items() if owner == node})

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
        return sorted(unit for task in set(tasks) for unit in self._by_task.get(task, ()))

    # Standbys.

    def follow(self, node: str, units: Iterable[UnitId]) -> None:
        """Note that a node is asked to follow these units."""
        self._standbys.setdefault(node, {}).update(dict.fromkeys(units, False))
        self._route = self._standby_view = None

    def unfollow(self, node: str, units: Iterable[UnitId]) -> None:
        for unit in list(units):
            self._standbys.get(node, {}).pop(unit, None)
        self._route = self._standby_view = None

    def standbys_caught_up(self, node: str, units: Iterable[UnitId]) -> None:
        followed = self._standbys.get(node, {})
        followed.update({unit: True for unit in units if unit in followed})
        self._standby_view = None

    def followed_by(self, node: str) -> Collection[UnitId]:
        return self._standbys.get(node, {}).keys()

    def standbys(self) -> Mapping[str, tuple[UnitId, ...]]:
        """Return the standbys on each node that could take over now: the same object until that changes."""
        if self._standby_view is None:
            ready = {node: sorted(unit for unit in units if units[unit]) for node, units in self._standbys.items()}
            self._standby_view = {node: tuple(units) for node, units in ready.items() if units}
        return self._standby_view

    def following(self) -> list[str]:
        """Return the nodes that follow units."""
        return sorted(node for node, units in self._standbys.items() if units)

    def has_standbys(self, node: str, units: Iterable[UnitId]) -> bool:
        """Whether a node follows all these units and has caught up with them."""
        followed = self._standbys.get(node, {})
        return all(followed.get(unit, False) for unit in units)

    def prepare(self, units: Iterable[UnitId], target: str) -> None:
        """Let the target follow units that are about to move there."""
        self._prepared.update(dict.fromkeys(units, target))

    def is_prepared(self, unit: UnitId, node: str) -> bool:
        return self._prepared.get(unit) == node

    def prepared_for(self, node: str) -> list[UnitId]:
        return [unit for unit, target in self._prepared.items() if target == node]

    # Moves.

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
        if self._standbys.pop(node, None):
            self._route = self._standby_view = None
        self._installed.difference_update(self.units_on(node))
        for unit, (ref, source) in list(self._released.items()):
            if source == node and self._stored.get(unit) == ref.key:
                self._released[unit] = ReleasedState(ref, None)
            elif source == node:
                del self._released[unit]

    def request_install(self, units: Iterable[UnitId], target: str) -> None:
        """Make the target the owner; the next `take_installs` returns the unit."""
        units = list(units)
        self._to_install.setdefault(target, set()).update(units)
        self.unfollow(target, units)
        for unit in units:
            if self._owners[unit] != target:
                self._owners[unit] = target
                self._installed.discard(unit)
                self._tasks = None

    def take_installs(self) -> dict[str, list[UnitId]]:
        """Return, once, the units that each target has to install."""
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
            self._prepared.pop(unit, None)
        self._route = None

    def commit(self, routing: Routing) -> None:
        self.committed = routing
        self._route = None

    def reset(self) -> None:
        """Return to the committed routing; nothing moves."""
        self.end_move(list(self._owners))
        self._to_install.clear()
        self._standbys.clear()
        self._standby_view = None
        self._owners = {unit: self.committed.owners(unit)[0] for unit in self._owners}
        self._tasks = None

    def route(self) -> Routing:
        """Return where senders bring rows now: the same object until that changes."""
        if self._route is None:
            self._route = self._current_route()
        return self._route

    def _current_route(self) -> Routing:
        committed = self.committed
        owners = [self._owners[UnitId(0, task)] for task in range(committed.assignment.tasks)]
        for unit, node in self._destinations.items():
            owners[unit.task] = node
        standbys = self._standbys_by_task(owners)
        if tuple(owners) == committed.assignment.owners:
            if standbys == committed.standbys:
                return committed
            return committed.with_assignment(committed.assignment, committed.epoch, standbys)
        nodes = list(dict.fromkeys((*committed.assignment.nodes, *owners)))
        assignment = ScatteredAssignment.from_owners(owners, nodes)
        return committed.with_assignment(assignment, committed.epoch, standbys)

    def _standbys_by_task(self, owners: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the nodes that get rows for standbys: those that follow units of the first stage.

        Nodes that follow nothing but guests read their rows from the log: senders would bring those of all keys.
        """
        following: list[list[str]] = [[] for _ in owners]
        for node in self.following():
            for task in {unit.task for unit in self._standbys[node] if unit.stage == 0 and not unit.guests}:
                if node != owners[task]:
                    following[task].append(node)
        return tuple(map(tuple, following)) if any(following) else ()
