"""The state of a job as of its last complete batch: batches after its last snapshots are replayed."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from elastic.core.pipeline import create_runners
from elastic.core.steps import Step, steps_of
from elastic.operators.calls import UnitState
from elastic.operators.stage_runner import StageRunner
from elastic.results import Description
from storage import Secret, Store
from storage.errors import UnknownOperator
from storage.state import InputLog, Manifest, Manifests, StateManager, UnitId

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobSnapshot:
    """A job in a store, of which one unit's state at a time is in memory. It takes nothing over and changes nothing."""

    store: Store
    secret: Secret
    name: str
    manifest: Manifest
    description: Description
    runners: tuple[StageRunner, ...]

    @classmethod
    def open(cls, store: Store, secret: Secret, name: str) -> "JobSnapshot":
        """Read what the store has of a job; raises `UnknownOperator` if that is nothing."""
        manifest = Manifests(store, secret, name).latest()
        if manifest is None:
            raise UnknownOperator(name, store.url)
        description = Description.load(store, secret, name)
        return cls(store, secret, name, manifest, description, create_runners(description, "fail"))

    def states(self, stage: int) -> Iterator[tuple[UnitId, UnitState]]:
        """Yield the units of a stage that have a state, with the state, in order."""
        runner, log = self.runners[stage], InputLog(self.store, self.secret, self.name)
        steps = [step for step in steps_of(self.manifest) if step.batch <= self.manifest.last_batch]
        runner.open()
        try:
            with StateManager(self.store, self.secret, self.name, threads=1) as manager:
                for unit, ref in sorted(self.manifest.units.items(), key=lambda item: item[0]):
                    through = self.manifest.units.through(unit)
                    left = [step for step in steps if step.batch > through]
                    if unit.stage != stage or (ref is None and not left):
                        continue
                    state = runner.new_state() if ref is None else runner.load(manager.load(ref), unit)
                    for step in left:
                        _repeat(runner, log, unit, state, step)
                    yield unit, state
        finally:
            runner.close()


def _repeat(runner: StageRunner, log: InputLog, unit: UnitId, state: UnitState, step: Step) -> None:
    """Take one step again; what it emits was emitted before, or is emitted by the job."""
    found = [log.read(ref, [unit.number]) for ref in step.logs]
    slices = [rows[unit.number] for rows in found if unit.number in rows]
    moment = runner.moment(unit, step.batch, step.round, step.time)
    if slices or runner.is_due(state, moment):
        runner.step(state, slices, moment)
