"""The migration under way: a pure run, and between it and the coordinator a loop that decides nothing."""

from typing import Any

from elastic.runtime.protocol import Coordinator, commands, events
from elastic.runtime.protocol.commands import Command
from migration.live import MigrationRun, ReleaseState


class Moving:
    """Passes on what the coordinator tells to the run, and what the run wants to the coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._run: MigrationRun | None = None
        self._lease = ""
        self._direct = False

    @property
    def run(self) -> MigrationRun | None:
        return self._run

    @property
    def is_under_way(self) -> bool:
        return self._run is not None and not self._run.is_over and not self._run.is_paused

    def begin(self, run: MigrationRun, lease: str, *, direct: bool = False) -> list[Command]:
        self._run, self._lease, self._direct = run, lease, direct
        return self._with_owners(self._carried_out(run.start()))

    def go_on(self) -> list[Command]:
        return [] if self._run is None else self._with_owners(self._carried_out(self._run.go_on()))

    def stop_nodes(self) -> list[Command]:
        """All of them, and with them the migration under way, unless it is about to be committed: then nothing."""
        if self._run is not None and not self._run.is_over:
            if self._run.is_committing:
                return []
            self._run = None
        return self.settle(self._coordinator.handle(events.AllNodesUnwanted()))

    def start_owners(self) -> list[Command]:
        return self._with_owners([])

    def _with_owners(self, decided: list[Command]) -> list[Command]:
        """Who is given units must be there: after a stop, nobody is."""
        return [*decided, *self.settle(self._coordinator.handle(events.OwnersWanted()))]

    def settle(self, decided: list[Command]) -> list[Command]:
        """What is left to do for the cluster, when all that concerns the migration was passed on."""
        left: list[Command] = []
        waiting = list(decided)
        while waiting:
            command = waiting.pop(0)
            if not isinstance(command, commands.Tell):
                left.append(command)
            elif self._run is not None and not self._run.is_over:
                waiting += self._carried_out(self._run.handle(command.event), settle=False)
        return left

    def _carried_out(self, wanted: list[Any], settle: bool = True) -> list[Command]:
        decided: list[Command] = []
        for command in wanted:
            event: Any = command
            if isinstance(command, ReleaseState):
                event = events.MoveAsked(command.hand_over, self._lease, self._direct)
            decided += self._coordinator.handle(event)
        return self.settle(decided) if settle else decided
