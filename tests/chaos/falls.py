"""Deaths at chosen steps of a migration: a node of a hand-over, a bystander or the driver is killed at that moment.

The engine does not know of this: the driver under test decides with `MortalHandOvers` and `MortalRekeyings`. Each
planned death happens once; a file records it, because the driver itself may be the victim.
"""

import json
import os
import random
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from elastic.core import events
from elastic.core.commands import Command, CommitAssignment, Regrouping
from elastic.core.hand_over import HandOver, HandOverAction, HandOvers
from elastic.core.ids import Batch, UnitId
from elastic.core.rekeying import Rekeyings
from elastic.routing import Groupings

RELEASING = "releasing"  # the driver tells the source to release its tasks
RELEASED = "released"  # the states are stored or offered, and the driver tells the target to install them
INSTALLED = "installed"  # the target has them, and the driver commits the assignment
COMMITTED = "committed"  # the assignment is committed, and the driver tells the source to drop its tasks
STEPS = (RELEASING, RELEASED, INSTALLED, COMMITTED)

ORDERING = "ordering"  # the driver commits orders to part with keys
ORDERED = "ordered"  # they are committed, and nodes are told
PARTED = "parted"  # the states of the keys are committed, and nodes are told
JOINED = "joined"  # every unit has taken them
KEY_STEPS = (ORDERING, ORDERED, PARTED, JOINED)

SOURCE, TARGET, BYSTANDER, DRIVER = "source", "target", "bystander", "driver"
VICTIMS = (SOURCE, TARGET, BYSTANDER, DRIVER)

_STEP_OF_ACTION = {
    HandOverAction.RELEASE: RELEASING,
    HandOverAction.INSTALL: RELEASED,
    HandOverAction.DROP: COMMITTED,
}


class Falls:
    """The deaths that are planned for a driver; at most one happens in each migration."""

    folder: ClassVar[str] = ""
    planned: ClassVar[tuple[tuple[str, str], ...]] = ()  # (step, victim)
    pids: ClassVar[Callable[[], dict[str, int]]] = dict  # of the nodes that live
    owners: ClassVar[Callable[[], Sequence[str]]] = tuple  # of all tasks

    def __init__(self) -> None:
        self._has_killed = False

    def begin(self) -> None:
        self._has_killed = False

    def kill_as_planned(self, step: str, source: str, target: str) -> None:
        left = [victim for planned, victim in self.planned if planned == step and not _mark(step, victim).exists()]
        if left and not self._has_killed:
            self._has_killed = self._kill(step, left[0], source, target)

    def _kill(self, step: str, victim: str, source: str, target: str) -> bool:
        """Kill a process that plays that part, and return whether there was one."""
        alive = type(self).pids()
        parts = {SOURCE: [source], TARGET: [target]}
        others = sorted(set(alive) - {source, target})
        found = [os.getpid()] if victim == DRIVER else [alive[n] for n in parts.get(victim, others) if n in alive]
        if not found:
            return False
        _mark(step, victim).touch()
        with suppress(ProcessLookupError):  # it has died on its own
            os.kill(random.Random(step).choice(found), signal.SIGKILL)  # noqa: S311
        return True


class MortalHandOvers(HandOvers):
    """Hand-overs during which the planned deaths happen."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._falls = Falls()

    def begin(self, spec: events.MigrationRequested) -> list[Command]:
        self._falls.begin()
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
        self._falls.kill_as_planned(step, hand_over.source, hand_over.target)


class MortalRekeyings(Rekeyings):
    """Rekeyings during which the planned deaths happen; source and target are those of the first key that moves."""

    def __init__(self, groupings: Callable[[], Groupings] | None = None) -> None:
        super().__init__(groupings)
        self._falls = Falls()
        self._nodes = "", ""

    def begin(self, spec: events.RekeyRequested) -> None:
        self._falls.begin()
        super().begin(spec)

    def start_portion(self, batch: Batch, groupings: Groupings) -> Regrouping | None:
        regrouping = super().start_portion(batch, groupings)
        if regrouping is not None:
            unit, orders = next(iter(regrouping.orders.items()))
            owners = Falls.owners()
            source, target = (owners[UnitId.from_number(int(number)).task] for number in (unit, orders.targets[0]))
            self._nodes = source, target
            self._falls.kill_as_planned(ORDERING, *self._nodes)
        return regrouping

    def round_committed(self, batch: Batch, *, is_regrouped: bool, log_bytes: int) -> None:
        super().round_committed(batch, is_regrouped=is_regrouped, log_bytes=log_bytes)
        if self.batch == batch and not self.is_committing:
            self._falls.kill_as_planned(ORDERED if is_regrouped else PARTED, *self._nodes)

    def batch_applied(self, batch: Batch) -> None:
        was_moving = self.batch == batch
        super().batch_applied(batch)
        if was_moving:
            self._falls.kill_as_planned(JOINED, *self._nodes)


def every_fall(steps: Sequence[str] = STEPS) -> str:
    """Return a plan in which every victim dies once at each of these steps."""
    return json.dumps([[step, victim] for step in steps for victim in VICTIMS])


def happened(folder: str) -> list[str]:
    """Return the deaths that have happened, as `step victim`."""
    return sorted(path.name.removeprefix("fell ") for path in Path(folder).glob("fell *"))


def _mark(step: str, victim: str) -> Path:
    return Path(Falls.folder, f"fell {step} {victim}")
