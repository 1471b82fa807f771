"""A driver that scales its job back and forth while it runs, and looks at what came of each migration."""

import random
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import elastic
from elastic.control import KeyMigration, Migration, TaskMigration
from elastic.control.key_portions import KeyPortion
from elastic.control.records import KeyMigrationRecords
from elastic.errors import ElasticError, KeysNotMeasured, MigrationFailed, NodeStartTimeout
from elastic.routing import KeyTargets, hash_key
from migration import KeyLoads, MigrationError, plan_keys
from tests.chaos.settings import DriverSettings

_WAIT_SECONDS = 240.0  # for one migration, on a machine that has much else to do
_SETTLE_SECONDS = 20.0
_LOOK_SECONDS = 0.1


class Scaling:
    """`settings.scales` migrations one after the other, over all lives of the driver; in a thread of its own.

    What is done, at random by the seed and the number of the migration: more nodes, fewer, that very node away, a
    rebalance; in any of the modes; some are paused or cancelled on the way.
    """

    def __init__(self, job: elastic.SparkJob, settings: DriverSettings) -> None:
        self._job = job
        self._settings = settings
        self.wrong: list[str] = []
        self.outcomes: dict[str, int] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._scale_all, name="scaling", daemon=True)
        if settings.scales:
            self._thread.start()

    @property
    def done(self) -> int:
        """Migrations that were begun in all lives; the last one may be under way."""
        return len(list(Path(self._settings.folder).glob("scaled *")))

    def stop(self) -> None:
        """After the migration under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_WAIT_SECONDS)

    def _scale_all(self) -> None:
        try:
            while self.done < self._settings.scales and not self._stopping.is_set():
                self._scale_once(self.done)
        except Exception as error:  # noqa: BLE001 - any error is reported to the judge
            self.wrong.append(f"scaling ended with {type(error).__name__}: {error}")

    def _scale_once(self, number: int) -> None:
        chance = random.Random(f"{self._settings.seed} {number}")  # noqa: S311 - for a repeatable choice
        moves_keys = self._settings.grouping == "table" and chance.random() < 0.6
        request = {"level": "keys", "theta": 0.0} if moves_keys else self._request(chance)
        try:
            migration = self._move_keys(chance) if moves_keys else self._job.scale(**request)
            self._disturb(migration, chance)
            if not migration.wait(_WAIT_SECONDS):
                story = "\n".join([*migration.story()[-20:], *(line[:400] for line in self._job.story()[-40:])])
                self.wrong.append(f"migration {number} {request} takes for ever: {migration.progress()}\n{story}")
                self._stopping.set()
                return
            self._check(migration, number, request)
        except (NodeStartTimeout, MigrationFailed) as error:
            self._count("failed" if isinstance(error, MigrationFailed) else "no room")
        except (ElasticError, MigrationError) as error:
            self.wrong.append(f"migration {number} {request}: {type(error).__name__}: {error}")
        Path(self._settings.folder, f"scaled {number}").touch()

    def _move_keys(self, chance: random.Random) -> Migration:
        """Move what a plan would, or any keys to any tasks, in several portions."""
        if chance.random() < 0.3:
            with suppress(KeysNotMeasured):
                return self._job.rebalance(level="keys", theta=0.0)
        tasks, keys = self._settings.tasks, self._settings.keys
        chosen = chance.sample(range(keys), chance.choice([1, 20, keys // 4]))
        targets = {hash_key(key): chance.choice([None, *range(tasks)]) for key in chosen}
        portions = [
            KeyPortion(KeyTargets.from_mapping(0, dict(list(targets.items())[start::3])), 0.0) for start in range(3)
        ]
        scaler = self._job._scaler
        with scaler._take_turn(queue=False):
            nothing = plan_keys(KeyLoads([1], [0], [0], [1.0]), self._job.assignment().nodes, relax=True)
            migration = KeyMigration(nothing, portions, scaler._cluster)
            scaler._start(migration, KeyMigrationRecords(migration, 0), scaler._migrate_keys)
        return migration

    def _request(self, chance: random.Random) -> dict[str, Any]:
        nodes = sorted(set(self._job.assignment().owners))
        most = self._settings.most_nodes
        how: dict[str, Any] = {
            "mode": chance.choice(self._settings.modes.split(",")),
            "transfer": chance.choice(["store", "direct"]),
            "tasks_per_node": chance.choice([1, 2, 5]),
            "relax": True,
        }
        kind = chance.choice(["count", "count", "remove", "rebalance"])
        if kind == "remove" and len(nodes) > 1:
            return {"remove": [chance.choice(nodes)], **how}
        if kind == "rebalance":
            return {"tau": chance.choice([0.05, 0.4]), **how}
        return {"nodes": chance.randint(1, most), **how}

    def _disturb(self, migration: Migration, chance: random.Random) -> None:
        """Some are paused for a moment, some are cancelled, at any moment."""
        fate = chance.choice(["leave", "leave", "leave", "pause", "cancel"])
        if fate == "leave":
            return
        time.sleep(chance.uniform(0, 0.8))
        if fate == "cancel":
            migration.cancel()
            return
        migration.pause()
        time.sleep(chance.uniform(0, 0.8))
        migration.resume()

    def _check(self, migration: Migration, number: int, request: dict[str, Any]) -> None:
        """A plan executed is the plan promised, and everybody agrees on who has what."""
        progress = migration.progress()
        self._count(progress.phase)
        is_done = progress.phase == "done" and isinstance(migration, TaskMigration)
        if is_done and progress.tasks_done != len(migration.plan.moves):
            self.wrong.append(f"migration {number} moved {progress.tasks_done} of {len(migration.plan.moves)} tasks")
        deadline = time.monotonic() + _SETTLE_SECONDS
        while (found := self._disagreement()) and time.monotonic() < deadline and not self._stopping.is_set():
            time.sleep(_LOOK_SECONDS)
        if found and not self._stopping.is_set() and not self._lost_nodes():
            self.wrong.append(f"after migration {number} {request}: {found}")

    def _disagreement(self) -> str:
        """Between the committed assignment and what nodes say that they have; empty if there is none."""
        owners = self._job.assignment().owners
        for node in self._job.status().nodes:
            has = {unit.task for unit in node.units}
            should = {task for task, owner in enumerate(owners) if owner == node.name}
            if has != should:
                return f"{node.name} has {sorted(has)} and owns {sorted(should)}"
        return ""

    def _lost_nodes(self) -> bool:
        """Return whether a node is restarting, and so has no units yet."""
        return any(not node.units for node in self._job.status().nodes)

    def _count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
