"""The migration under way: a pure run, and between it and the coordinator a loop that decides nothing."""

from typing import Any

from elastic.runtime.protocol import Coordinator, commands, events
from elastic.runtime.protocol.commands import Command
from migration.live import MigrationRun, ReleaseState


class Moving:
    """Passes on what the coordinator tells to the run, and what the run wants to the coordinator.

    Every mini-migration has a lease of its own: `OpenMoveLease` before it starts, `CloseMoveLease` when all its
    hand-overs are done. Between two mini-migrations, and so during a pause, the migration pins nothing in the store.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._run: MigrationRun | None = None
        self._lease = ""  # of the mini-migration under way
        self._lease_asked = False
        self._direct = False

    @property
    def run(self) -> MigrationRun | None:
        return self._run

    @property
    def is_under_way(self) -> bool:
        run = self._run  # read once: another thread may forget it
        return run is not None and not run.is_over and not run.is_paused

    def begin(self, run: MigrationRun, *, direct: bool = False) -> list[Command]:
        self._run, self._direct = run, direct
        return [*self._close_lease(), *self.go_on()]

    def go_on(self) -> list[Command]:
        """Start the next mini-migration as soon as it has a lease."""
        if self._run is None or self._lease_asked or not self._run.is_between:
            return []
        if not self._run.can_go_on:
            return self.start_owners()
        self._lease_asked = True
        return [commands.OpenMoveLease()]

    def handle(self, event: Any) -> list[Command]:
        """What the cluster has to do now that this happened."""
        if isinstance(event, events.MoveLeaseOpened):
            return self._start_under(event.lease)
        return self._settle(self._coordinator.handle(event))

    def stop_nodes(self) -> list[Command]:
        """All of them, and with them the migration under way, unless it is about to be committed: then nothing."""
        if self._run is not None and not self._run.is_over:
            if self._run.is_committing:
                return []
            self._run = None
        return [*self.handle(events.AllNodesUnwanted()), *self._close_lease()]

    def start_owners(self) -> list[Command]:
        """Who is given units must be there: after a stop, nobody is."""
        return self.handle(events.OwnersWanted())

    def _start_under(self, lease: str) -> list[Command]:
        """Nothing starts if the run was paused, cancelled or given up while the lease was opened."""
        self._lease_asked = False
        self._lease = lease
        wanted = [] if self._run is None else self._run.go_on()
        if not wanted:
            return [*self._close_lease(), *self.start_owners()]
        return [*self._settle(self._carry_out(wanted)), *self.start_owners()]

    def _settle(self, decided: list[Command]) -> list[Command]:
        """What is left to do for the cluster, when all that concerns the migration was passed on."""
        left: list[Command] = []
        waiting = list(decided)
        while waiting:
            command = waiting.pop(0)
            if not isinstance(command, commands.Tell):
                left.append(command)
            elif self._run is not None and not self._run.is_over:
                waiting += self._carry_out(self._run.handle(command.event))
        if self._lease and self._run is not None and self._run.is_between:
            left += [*self._close_lease(), *self.go_on()]
        return left

    def _carry_out(self, wanted: list[Any]) -> list[Command]:
        decided: list[Command] = []
        for command in wanted:
            event: Any = command
            if isinstance(command, ReleaseState):
                event = events.MoveAsked(command.hand_over, self._lease, self._direct)
            decided += self._coordinator.handle(event)
        return decided

    def _close_lease(self) -> list[Command]:
        lease, self._lease = self._lease, ""
        return [commands.CloseMoveLease(lease)] if lease else []
