"""Deaths at chosen steps of a migration: whoever plays a part in a hand-over, or stands by, is killed just then.

Nothing in the engine knows of this: the driver under test runs its migrations as `MortalRun`s. Each planned death
happens once, which a file remembers, for the driver itself may be the one that dies.
"""

import json
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from migration import live
from migration.live import MigrationRun

RELEASING = "releasing"  # the source was asked for its tasks
RELEASED = "released"  # their states are on their way or stored, and the target is asked to take over
INSTALLED = "installed"  # the target has them, and the assignment is about to be committed
COMMITTED = "committed"  # the assignment counts, and the source is about to forget
STEPS = (RELEASING, RELEASED, INSTALLED, COMMITTED)

SOURCE, TARGET, BYSTANDER, DRIVER = "source", "target", "bystander", "driver"
VICTIMS = (SOURCE, TARGET, BYSTANDER, DRIVER)

_STEP_AFTER: dict[type, str] = {
    live.StateReleased: RELEASED,
    live.StateInstalled: INSTALLED,
    live.AssignmentCommitted: COMMITTED,
}


class MortalRun(MigrationRun):
    """A migration in which one of those concerned dies at each step that was planned, at most one a migration."""

    folder: ClassVar[str] = ""
    planned: ClassVar[tuple[tuple[str, str], ...]] = ()  # (step, victim)
    pids: ClassVar[Callable[[], dict[str, int]]] = dict

    _fallen = False

    def go_on(self) -> list[Any]:
        commands = super().go_on()
        if commands:
            self._fall(RELEASING, commands)
        return commands

    def handle(self, event: Any) -> list[Any]:
        commands = super().handle(event)
        step = _STEP_AFTER.get(type(event))
        if step is not None and commands:
            self._fall(step, commands)
        return commands

    def _fall(self, step: str, commands: list[Any]) -> None:
        left = [victim for planned, victim in self.planned if planned == step and not _mark(step, victim).exists()]
        if self._fallen or not left:
            return
        for command in commands:
            hand_over = getattr(command, "hand_over", None) or self._any_hand_over()
            if hand_over is not None and self._kill(step, left[0], hand_over):
                self._fallen = True
                return

    def _any_hand_over(self) -> live.HandOver | None:
        return self._ongoing[0].hand_over if self._ongoing else None

    def _kill(self, step: str, victim: str, hand_over: live.HandOver) -> bool:
        """Whether there was somebody to kill."""
        alive = type(self).pids()
        parts = {SOURCE: [hand_over.source], TARGET: [hand_over.target]}
        others = sorted(set(alive) - {hand_over.source, hand_over.target})
        found = [os.getpid()] if victim == DRIVER else [alive[n] for n in parts.get(victim, others) if n in alive]
        if not found:
            return False
        _mark(step, victim).touch()
        with suppress(ProcessLookupError):  # it has died by itself since
            os.kill(random.Random(step).choice(found), signal.SIGKILL)  # noqa: S311
        return True


def every_fall() -> str:
    """A plan in which everybody dies once at every step."""
    return json.dumps([[step, victim] for step in STEPS for victim in VICTIMS])


def happened(folder: str) -> list[str]:
    """The deaths that were, as `step victim`."""
    return sorted(path.name.removeprefix("fell ") for path in Path(folder).glob("fell *"))


def _mark(step: str, victim: str) -> Path:
    return Path(MortalRun.folder, f"fell {step} {victim}")
