"""Standbys: their places, the commands to nodes that follow, and takeovers when a node is lost.

    all nodes serve, or a migration is over ->  CommitAssignment with the places of standbys
    AssignmentCommitted                     ->  InstallUnits, as standbys, to the nodes that do not follow yet
    StandbysDropped                         ->  InstallUnits, as a standby, as soon as there is a newer state or log
    StandbysCaughtUp                        ->  the standbys can take over; DropUnits to those that are no longer needed
    NodeLost                                ->  InstallUnits to standbys of its units that have caught up, at once; then
                                                CommitAssignment with the new owners
    NodeJoined, by its next incarnation     ->  InstallUnits, as standbys, for what it lost

The commit that makes a standby the owner is not waited for: a driver that restarts before it begins with the owners
before, from the same log, and all nodes of the driver before are replaced. A standby that is lost while it takes over
is a lost owner like any other. An owner that moves to another node at the moment is left to the hand-over.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from elastic.core import commands
from elastic.core.commands import Command
from elastic.core.ids import Batch, Epoch, Task, UnitId
from elastic.core.messages import DropUnits, FollowBatches, InstallUnits
from elastic.core.nodes import Nodes
from elastic.core.placement import Placement
from elastic.routing.standbys import carry_standbys, place_standbys, to_ownership
from storage.state import StateRef

Install = Callable[[Iterable[UnitId], str], InstallUnits]  # units that a node is to follow
_Origin = tuple[StateRef | None, Batch]  # a saved state, and the batch after which the log goes on


class Standbys:
    """The standbys of one job. `counts` says for each stage how many its units have, `of_guests` how many its guests.

    `advance` is called after every event, and does nothing until one of the other methods says that there may be
    something to do.
    """

    def __init__(
        self,
        placement: Placement,
        nodes: Nodes,
        counts: Sequence[int],
        install: Install,
        epoch: Callable[[], Epoch],
        *,
        of_guests: Sequence[int] = (),
    ) -> None:
        self._placement = placement
        self._nodes = nodes
        self._counts = tuple(counts)
        self._install = install
        self._epoch = epoch
        self._of_guests = tuple(of_guests) or self._counts
        self._number = max((*self._counts, *self._of_guests), default=0)
        self._places_are_due = self._number > 0 or bool(placement.committed.standbys)
        self._hosts: dict[str, str] = {}  # of nodes, when standbys were placed
        self._was_moving = False
        self._changed = True
        self._left: set[str] = set()  # nodes that were asked to leave, and may be in the committed assignment yet
        self._origins: dict[tuple[str, UnitId], _Origin] = {}  # of the units that each node was last asked to follow
        self._unusable: dict[tuple[str, UnitId], _Origin] = {}  # the node could not follow from there

    @property
    def without_node(self) -> int:
        """Number of standbys that a unit lacks because there are too few other nodes."""
        return max(0, self._number - (len(self._placement.committed.assignment.nodes) - 1))

    # What happened.

    def note_change(self) -> None:
        """Look again at who should follow what: nodes joined or left, units moved, an assignment was committed."""
        self._changed = True

    def left(self, node: str) -> None:
        """Give up the place of a node that was asked to leave; standbys may have taken over all that it owned."""
        self._left.add(node)
        self._changed = self._places_are_due = True

    def caught_up(self, node: str, units: Iterable[UnitId]) -> None:
        self._placement.standbys_caught_up(node, units)
        self._changed = True

    def dropped(self, node: str, units: Iterable[UnitId]) -> None:
        """Tell the node to follow these again, from a newer state: as soon as there is one.

        A node that gets the same state again would drop the unit again, at once and without end.
        """
        units = list(units)
        self._placement.unfollow(node, units)
        self._unusable.update(
            ((node, unit), self._origins[node, unit]) for unit in units if (node, unit) in self._origins
        )
        self._changed = True

    def refresh(self, units: Iterable[UnitId]) -> None:
        """Tell all standbys of these units again how to take their steps."""
        for node in self._nodes:
            self._placement.unfollow(node, set(units).intersection(self._placement.followed_by(node)))
        self._changed = True

    def promote(self, lost: str, moving: Collection[Task]) -> set[str]:
        """Make standbys that have caught up the owners of the lost node's tasks, except of those that are `moving`.

        Returns the nodes that take over. All units of a task go to one node, also those of stages without standbys:
        these are restored there. Of several standbys the one with the fewest units takes over.
        """
        promoted: set[str] = set()
        load = Counter(self._placement.count_units())
        for task in self._placement.tasks_of(lost):
            units = self._placement.units_of([task])
            followed = [unit for unit in units if self._count(unit)]
            if task in moving or not followed:
                continue
            ready = [node for node in self._nodes.serving() if self._placement.has_standbys(node, followed)]
            if ready:
                node = min(ready, key=lambda node: (load[node], node))
                load[node] += len(units)
                self._placement.request_install(units, node)
                promoted.add(node)
        self._changed = True
        return promoted

    # What follows from it.

    def advance(self, *, is_moving: bool, can_install: bool) -> list[Command]:
        """Return what has become possible: a commit of owners and standbys, and messages to nodes that follow."""
        if self._was_moving and not is_moving:
            self._places_are_due = self._changed = True
        self._was_moving = is_moving
        if not self._changed or not can_install:
            return []
        self._changed = False
        self._left.difference_update(self._nodes)  # those that were asked to start again
        return [*self._start_missing(is_moving=is_moving), *self._commit(is_moving=is_moving), *self._command_nodes()]

    def publish(self, published: Batch) -> list[Command]:
        """Let standbys take a batch that was published, where no other command says so soon."""
        message = FollowBatches(self._epoch(), published)
        return [command for node in self._placement.following() for command in self._nodes.send(node, message)]

    def wants(self, unit: UnitId, node: str) -> bool:
        """Whether the node should follow the unit, by what is committed or because the unit is about to move there."""
        places = self._placement.committed.standbys
        is_placed = bool(places) and node in places[unit.task][: self._count(unit)]
        return (is_placed or self._placement.is_prepared(unit, node)) and self._placement.owner(unit) != node

    def _start_missing(self, *, is_moving: bool) -> list[Command]:
        """Start nodes that own nothing and were stopped with all others: they are needed for standbys."""
        if is_moving or not self._number or not self._nodes.serving():
            return []
        nodes = [node for node in self._placement.committed.assignment.nodes if node not in self._left]
        return [command for name in nodes for command in self._nodes.request_start(name)]

    def _commit(self, *, is_moving: bool) -> list[Command]:
        routing = self._placement.committed
        if self._placement.is_committing or not (self._number or routing.standbys):
            return []
        owners = self._placement.settled_owners()
        assignment = routing.assignment
        nodes = tuple(dict.fromkeys((*(node for node in assignment.nodes if node not in self._left), *owners)))
        if owners != assignment.owners or set(nodes) != set(assignment.nodes):
            assignment = to_ownership(owners, nodes)
        standbys = carry_standbys(routing, assignment)
        serving = self._nodes.serving()
        hosts = self._nodes.places()
        if (self._places_are_due or hosts != self._hosts) and not is_moving and serving.issuperset(assignment.nodes):
            self._places_are_due, self._hosts = False, hosts
            standbys = place_standbys(assignment, self._number, hosts, standbys)
        if assignment is routing.assignment and standbys == routing.standbys:
            return []
        self._placement.is_committing = True
        return [commands.CommitAssignment(assignment, standbys)]

    def _command_nodes(self) -> list[Command]:
        decided: list[Command] = []
        for node in sorted(self._nodes.serving()):
            followed = self._placement.followed_by(node)
            wanted = self._find_wanted(node)
            if new := sorted(wanted.difference(followed)):
                decided += self._follow(node, new)
            surplus = sorted(unit for unit in set(followed).difference(wanted) if self._has_all(unit))
            if surplus:
                self._placement.unfollow(node, surplus)
                decided += self._nodes.send(node, DropUnits(self._epoch(), tuple(surplus)))
        return decided

    def _follow(self, node: str, units: Iterable[UnitId]) -> list[Command]:
        message = self._install(units, node)
        origins = {handle: (handle.state, handle.through) for handle in message.units}
        usable = [handle for handle, origin in origins.items() if self._unusable.get((node, handle.unit)) != origin]
        if not usable:
            return []
        self._origins.update(((node, handle.unit), origins[handle]) for handle in usable)
        self._placement.follow(node, [handle.unit for handle in usable])
        return self._nodes.send(node, replace(message, units=tuple(usable)))

    def _find_wanted(self, node: str) -> set[UnitId]:
        places = self._placement.committed.standbys
        tasks = [Task(task) for task, nodes in enumerate(places) if node in nodes]
        units = {*self._placement.units_of(tasks), *self._placement.prepared_for(node)}
        return {unit for unit in units if self.wants(unit, node)}

    def _count(self, unit: UnitId) -> int:
        return (self._of_guests if unit.guests else self._counts)[unit.stage]

    def _has_all(self, unit: UnitId) -> bool:
        """Whether all nodes that should follow the unit have caught up: only then may another standby go."""
        places = self._placement.committed.standbys
        wanted = places[unit.task][: self._count(unit)] if places else ()
        return all(self._placement.has_standbys(node, [unit]) for node in wanted if node != self._placement.owner(unit))
