"""What happens to a job that is watched: migrations, and nodes that are killed, at moments given by a seed."""

import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import elastic
from elastic.control import Migration
from elastic.errors import MigrationFailed, NoRoom

_SOON_SECONDS = 1.5  # after a migration has begun: some kills happen while state is on its way


@dataclass(frozen=True)
class Planned:
    """When migrations begin and nodes are killed, in seconds after the start, each in ascending order."""

    migrations: tuple[float, ...]
    kills: tuple[float, ...]

    @classmethod
    def spread(cls, seconds: float, migrations: int, kills: int, seed: int) -> Self:
        """Evenly over the time, none at its edges; every other kill soon after a migration has begun, if there are any.

        So nodes die both while state moves and while it does not.
        """
        chance = random.Random(f"{seed} when")  # noqa: S311 - for a repeatable choice
        begins = [(number + 0.5) * seconds / migrations for number in range(migrations)]
        dies = []
        for number in range(kills):
            at = (number + chance.uniform(0.2, 0.8)) * seconds / kills
            if number % 2 == 0 and begins:
                at = min(begins, key=lambda begin: abs(begin - at)) + chance.uniform(0, _SOON_SECONDS)
            dies.append(at)
        return cls(tuple(begins), tuple(sorted(dies)))


@dataclass
class Kill:
    """A node that was killed."""

    at: float
    node: str
    pid: int
    while_migrating: bool


@dataclass
class Disturbances:
    """Carries out what is planned, one migration at a time; a migration that fails is tried again."""

    job: elastic.Job
    planned: Planned
    seed: int
    most_nodes: int
    least_nodes: int = 2
    migrations: list[tuple[float, Migration]] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    failed: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed} what")  # noqa: S311 - for a repeatable choice

    def go_on(self, past: float) -> None:
        """Do what is due after so many seconds."""
        self._settle()
        if not self._is_migrating and self._is_due(self.planned.migrations, len(self.migrations), past):
            self._migrate(past)
        if self._is_due(self.planned.kills, len(self.kills), past):
            self._kill(past)

    @property
    def is_over(self) -> bool:
        """Whether everything has happened, and the job has recovered from it."""
        return self.is_complete and all(node.serving for node in self.job.status().nodes)

    @property
    def is_complete(self) -> bool:
        """Whether as many migrations as planned were brought to their end, and as many nodes were killed."""
        done = sum(migration.phase == "done" for _, migration in self.migrations)
        return done == len(self.planned.migrations) and len(self.kills) == len(self.planned.kills)

    def __str__(self) -> str:
        return f"{len(self.migrations)} migrations, {len(self.kills)} kills, {self.failed} tried again"

    @property
    def _is_migrating(self) -> bool:
        return bool(self.migrations) and not self.migrations[-1][1].is_over

    def _is_due(self, times: tuple[float, ...], done: int, past: float) -> bool:
        return done < len(times) and past >= times[done]

    def _settle(self) -> None:
        """A migration that has failed does not count."""
        if self.migrations and not self._is_migrating:
            try:
                self.migrations[-1][1].wait(0)
            except MigrationFailed:
                self.migrations.pop()
                self.failed += 1

    def _migrate(self, past: float) -> None:
        before = len(self.job.assignment().nodes)
        nodes = self._chance.choice([n for n in range(self.least_nodes, self.most_nodes + 1) if n != before])
        how: dict[str, Any] = {
            "mode": self._chance.choice(["progressive", "live"]),
            "transfer": self._chance.choice(["store", "direct"]),
            "tasks_per_node": self._chance.choice([2, 4]),
        }
        try:
            self.migrations.append((past, self.job.scale(nodes, relax=True, **how)))
        except NoRoom:
            self.failed += 1

    def _kill(self, past: float) -> None:
        nodes = [node for node in self.job.status().nodes if node.serving and node.pid]
        if not nodes:
            return
        chosen = self._chance.choice(nodes)
        with suppress(ProcessLookupError):
            os.kill(chosen.pid, signal.SIGKILL)
            self.kills.append(Kill(past, chosen.name, chosen.pid, self._is_migrating))
