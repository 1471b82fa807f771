"""Deaths at chosen steps of a migration: a node of a hand-over, a bystander or the driver is killed at that moment.

The engine does not know of this: the driver under test decides its migrations with `MortalHandOvers`. Each planned
death happens once; a file records it, because the driver itself may be the victim.
"""

import json
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from elastic.core import events
from elastic.core.commands import Command, CommitAssignment
from elastic.core.hand_over import HandOver, HandOverAction, HandOvers

RELEASING = "releasing"  # the driver tells the source to release its tasks
RELEASED = "released"  # the states are stored or offered, and the driver tells the target to install them
INSTALLED = "installed"  # the target has them, and the driver commits the assignment
COMMITTED = "committed"  # the assignment is committed, and the driver tells the source to drop its tasks
STEPS = (RELEASING, RELEASED, INSTALLED, COMMITTED)

SOURCE, TARGET, BYSTANDER, DRIVER = "source", "target", "bystander", "driver"
VICTIMS = (SOURCE, TARGET, BYSTANDER, DRIVER)

_STEP_OF_ACTION = {
    HandOverAction.RELEASE: RELEASING,
    HandOverAction.INSTALL: RELEASED,
    HandOverAction.DROP: COMMITTED,
}


class MortalHandOvers(HandOvers):
    """Hand-overs during which the planned deaths happen, at most one in each migration."""

    folder: ClassVar[str] = ""
    planned: ClassVar[tuple[tuple[str, str], ...]] = ()  # (step, victim)
    pids: ClassVar[Callable[[], dict[str, int]]] = dict  # of the nodes that live

    _has_killed = False

    def begin(self, spec: events.MigrationRequested) -> list[Command]:
        self._has_killed = False
        return super().begin(spec)

    def advance(self) -> list[Command]:
        decided = super().advance()
        if self._migration is not None and any(isinstance(command, CommitAssignment) for command in decided):
            self._kill_as_planned(INSTALLED, self._migration.in_flight[0].hand_over)
        return decided

    def _carry_out(self, action: HandOverAction, hand_over: HandOver) -> list[Command]:
        decided = super()._carry_out(action, hand_over)
        self._kill_as_planned(_STEP_OF_ACTION[action], hand_over)
        return decided

    def _kill_as_planned(self, step: str, hand_over: HandOver) -> None:
        left = [victim for planned, victim in self.planned if planned == step and not _mark(step, victim).exists()]
        if left and not self._has_killed:
            self._has_killed = self._kill(step, left[0], hand_over)

    def _kill(self, step: str, victim: str, hand_over: HandOver) -> bool:
        """Kill a process that plays that part, and return whether there was one."""
        alive = type(self).pids()
        parts = {SOURCE: [hand_over.source], TARGET: [hand_over.target]}
        others = sorted(set(alive) - {hand_over.source, hand_over.target})
        found = [os.getpid()] if victim == DRIVER else [alive[n] for n in parts.get(victim, others) if n in alive]
        if not found:
            return False
        _mark(step, victim).touch()
        with suppress(ProcessLookupError):  # it has died on its own
            os.kill(random.Random(step).choice(found), signal.SIGKILL)  # noqa: S311
        return True


def every_fall() -> str:
    """Return a plan in which every victim dies once at every step."""
    return json.dumps([[step, victim] for step in STEPS for victim in VICTIMS])


def happened(folder: str) -> list[str]:
    """Return the deaths that have happened, as `step victim`."""
    return sorted(path.name.removeprefix("fell ") for path in Path(folder).glob("fell *"))


def _mark(step: str, victim: str) -> Path:
    return Path(MortalHandOvers.folder, f"fell {step} {victim}")
