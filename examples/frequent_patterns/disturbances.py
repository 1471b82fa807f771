"""Disturbances of an audited job: migrations and killed nodes, at times given by a seed."""

import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import elastic
from elastic.control import Migration
from elastic.errors import MigrationFailed, NodeStartTimeout

_SOON_SECONDS = 1.5  # after the start of a migration, so that some kills happen while state moves


@dataclass(frozen=True)
class Schedule:
    """The times of migrations and kills, in seconds after the start, each in ascending order."""

    migrations: tuple[float, ...]
    kills: tuple[float, ...]

    @classmethod
    def spread_evenly(cls, seconds: float, migrations: int, kills: int, seed: int) -> Self:
        """Return evenly spread times; every other kill is soon after the start of a migration, if there are any.

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
    """A killed node."""

    at: float
    node: str
    pid: int
    while_migrating: bool


@dataclass
class Disturbances:
    """Runs the scheduled disturbances, one migration at a time; retries failed migrations."""

    job: elastic.SparkJob
    schedule: Schedule
    seed: int
    max_nodes: int
    min_nodes: int = 2
    migrations: list[tuple[float, Migration]] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    failed: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed} what")  # noqa: S311 - for a repeatable choice

    def advance(self, past: float) -> None:
        """Run the disturbances that are due after this many seconds."""
        self._settle()
        if not self._is_migrating and self._is_due(self.schedule.migrations, len(self.migrations), past):
            self._migrate(past)
        if self._is_due(self.schedule.kills, len(self.kills), past):
            self._kill(past)

    @property
    def is_over(self) -> bool:
        """Whether all disturbances have happened, and the job has recovered."""
        return self.is_complete and all(node.serving for node in self.job.status().nodes)

    @property
    def is_complete(self) -> bool:
        """Whether all scheduled migrations have completed, and all nodes were killed."""
        done = sum(migration.phase == "done" for _, migration in self.migrations)
        return done == len(self.schedule.migrations) and len(self.kills) == len(self.schedule.kills)

    def __str__(self) -> str:
        return f"{len(self.migrations)} migrations, {len(self.kills)} kills, {self.failed} retried"

    @property
    def _is_migrating(self) -> bool:
        return bool(self.migrations) and not self.migrations[-1][1].is_over

    def _is_due(self, times: tuple[float, ...], done: int, past: float) -> bool:
        return done < len(times) and past >= times[done]

    def _settle(self) -> None:
        """Remove a failed migration, so that it is retried."""
        if self.migrations and not self._is_migrating:
            try:
                self.migrations[-1][1].wait(0)
            except MigrationFailed:
                self.migrations.pop()
                self.failed += 1

    def _migrate(self, past: float) -> None:
        before = len(self.job.assignment().nodes)
        nodes = self._chance.choice([n for n in range(self.min_nodes, self.max_nodes + 1) if n != before])
        how: dict[str, Any] = {
            "mode": self._chance.choice(["progressive", "live"]),
            "transfer": self._chance.choice(["store", "direct"]),
            "tasks_per_node": self._chance.choice([2, 4]),
        }
        try:
            self.migrations.append((past, self.job.scale(nodes, relax=True, **how)))
        except NodeStartTimeout:
            self.failed += 1

    def _kill(self, past: float) -> None:
        nodes = [node for node in self.job.status().nodes if node.serving and node.pid]
        if not nodes:
            return
        chosen = self._chance.choice(nodes)
        with suppress(ProcessLookupError):
            os.kill(chosen.pid, signal.SIGKILL)
            self.kills.append(Kill(past, chosen.name, chosen.pid, self._is_migrating))
