"""Decisions of a node: the units it hosts, the position of each in the sequence of steps, and the steps left.

A unit takes every committed step once, in order. Units on one node need not be at the same step: one that was just
installed repeats old steps while the others take new ones. Replay differs from normal work in one point only: the
output of a step that was reported before is dropped. Standbys (see `hosted_unit`) take the same steps when their batch
is published.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.core.hosted_unit import HostedUnit
from elastic.core.ids import FIRST_EPOCH, NO_BATCH, Batch, UnitId
from elastic.core.messages import (
    ApplyStep,
    DropUnits,
    FollowBatches,
    InstallUnits,
    ReleaseUnits,
    TakeSnapshot,
    UnchangedUnit,
    UnitHandle,
)
from elastic.core.statistics import UnitStatistics
from elastic.core.steps import Position, Step
from elastic.errors import StateUnavailable
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.results import UNIT
from elastic.routing import Routing
from storage.state import SavedState


class ReadyStep(NamedTuple):
    """A step, the units on this node that can take it now, and what the command that named the step came with."""

    step: Step
    units: tuple[UnitId, ...]
    cause: str = ""
    routing: Routing | None = None  # of what the step emits
    standby: bool = False  # whether the units are standbys


class Installation(NamedTuple):
    """The result of an `InstallUnits`: states to load, and standbys that became active with the state they had."""

    to_load: tuple[UnitHandle, ...]
    promoted: tuple[UnitId, ...]


@dataclass
class StepResult:
    """The output of some units in a step: rows of `emitted` are for the next round, in the order of the units."""

    position: Position
    units: tuple[UnitId, ...]  # whose output was not reported before
    cause: str = ""
    routing: Routing | None = None  # of the rows of `emitted`
    results: dict[int, list[pa.Table]] = field(default_factory=dict)  # by stage, each with a column of unit numbers
    emitted: dict[int, list[pa.Table]] = field(default_factory=dict)  # by the stage that they are for
    quarantined: list[pa.Table] = field(default_factory=list)
    parts: list[pa.Table] = field(default_factory=list)  # states of keys that leave their unit, for the next round
    rows: int = 0


class Capture(NamedTuple):
    """A copy of a unit's state as of a batch, and the operator's version; later steps do not change it."""

    unit: UnitId
    state: Any
    batch: Batch
    version: str = "1"


class Answer(NamedTuple):
    """A unit's answer to a query; its state includes all rounds of `batch`, and perhaps some of the next one."""

    unit_number: int
    batch: Batch
    value: Any


class LookupFailure(NamedTuple):
    """A node's answer to a query if the operator's `lookup` raised an exception."""

    error: str


class _KnownStep(NamedTuple):
    step: Step
    cause: str
    routing: Routing | None


ObserveStep = Callable[[UnitId, Sequence[pa.Table], StepOutput, float], None]
Isolate = Callable[[StageRunner, UnitState, Sequence[pa.Table], Moment], tuple[UnitState, StepOutput]]


class UnitHost:
    """The units of one incarnation of a node. One thread at a time may call it.

    `isolate` takes a step in another process and returns the state after it, with the output; the host uses it for
    steps that have killed processes. `observe_step` is called with the rows, the output and the seconds of each step of
    a unit, except for steps that are replayed.
    """

    def __init__(self, runners: Sequence[StageRunner], isolate: Isolate | None = None) -> None:
        self._isolate = isolate
        self.observe_step: ObserveStep | None = None
        self.epoch = FIRST_EPOCH
        self.published = NO_BATCH  # the newest batch that standbys may take, as far as this node knows
        self._routing: Routing | None = None  # as of the newest command; None before the first
        self._taken_routing: Routing | None = None  # of the newest step that was taken
        self.replayed_rows = 0
        self._runners = runners
        self._units: dict[UnitId, HostedUnit] = {}
        self._follows = False  # whether any of them is a standby
        self.only_follows = False  # whether all of them are, so that no result waits for this node
        self._steps: dict[Position, _KnownStep] = {}
        self._followed_steps = 0  # known ones that only standbys have to take
        self._snapshot: TakeSnapshot | None = None
        self._to_capture: list[UnitId] = []

    def install(self, message: InstallUnits) -> Installation:
        """Give the units of the message their roles, and return those to load; see `HostedUnit.has_to_load`."""
        self.epoch = max(self.epoch, message.epoch)
        self.published = max(self.published, message.published)
        to_load, promoted = [], []
        for handle in message.units:
            unit = self._units.get(handle.unit)
            if unit is None or unit.has_to_load(handle, message.epoch):
                self._units[handle.unit] = HostedUnit.to_load(handle, message.epoch)
                to_load.append(handle)
            elif unit.take_role(handle, message.epoch):
                promoted.append(unit.id)
        self._routing = message.routing or self._routing
        known = [_KnownStep(step, message.cause, self._routing) for step in message.steps]
        self._steps.update((one.step.position, one) for one in known)
        self._roles_changed()
        return Installation(tuple(to_load), tuple(promoted))

    def is_waiting_for(self, handle: UnitHandle) -> bool:
        """Return whether this state of the unit is still to be loaded: not there yet, and not replaced by another."""
        unit = self._units.get(handle.unit)
        return unit is not None and unit.state is None and unit.saved == handle.state

    def is_standby(self, unit_id: UnitId) -> bool:
        unit = self._units.get(unit_id)
        return unit is not None and unit.is_standby

    def set_state(self, handle: UnitHandle, saved: SavedState | None) -> bool:
        """Give a unit its saved state (None: an empty one), so that it can take steps; False if it waits for none.

        A state of an older version of the operator is upgraded; raises `UpgradeFailed`.
        """
        if not self.is_waiting_for(handle):
            return False
        runner, unit = self._runners[handle.unit.stage], self._units[handle.unit]
        if saved is None:
            unit.state = runner.new_state()
            return True
        unit.state = runner.load(saved, handle.unit)
        if runner.version_of(saved.meta) != runner.version:
            unit.changed = Batch(max(unit.changed, unit.through + 1))  # so that the next snapshot saves it
        return True

    def release(self, message: ReleaseUnits) -> tuple[UnitId, ...]:
        """Let units stop, all after the same batch, and return them; units installed in a later epoch stay.

        After the same batch, because a batch with several rounds ends for all units or for none: one unit that stopped
        before a batch would keep another one in it, and both would wait for each other.
        """
        self.epoch = max(self.epoch, message.epoch)
        units = [self._units[unit] for unit in message.units if unit in self._units]
        leaving = [unit for unit in units if unit.epoch <= message.epoch and not unit.is_standby]
        last_batch = max((unit.position.batch for unit in leaving), default=None)
        for unit in leaving:
            unit.last_batch, unit.epoch = last_batch, message.epoch
        return tuple(unit.id for unit in leaving)

    def capture_released(self, unit_id: UnitId) -> Capture | None:
        """Return the state of a unit that has stopped; None while it has not."""
        unit = self._units.get(unit_id)
        return self._capture(unit) if unit is not None and unit.is_released else None

    def stopped_batch(self, unit_id: UnitId) -> Batch | None:
        """Return the batch after which a released unit has stopped; None while it has not."""
        unit = self._units.get(unit_id)
        return unit.position.batch if unit is not None and unit.is_released else None

    def drop(self, message: DropUnits) -> None:
        """Drop released units and standbys, except those that were installed again in a later epoch."""
        for unit_id in message.units:
            unit = self._units.get(unit_id)
            is_idle = unit is not None and (unit.is_standby or unit.last_batch is not None)
            if unit is not None and is_idle and unit.epoch <= message.epoch:
                del self._units[unit_id]
        self._roles_changed()

    def follow(self, message: FollowBatches) -> None:
        """Let standbys take the steps of all batches up to the one that was published last."""
        self.published = max(self.published, message.published)

    def drop_standbys(self, units: Iterable[UnitId]) -> tuple[UnitId, ...]:
        """Drop those of the units that are standbys, and return them: the log before their next step is gone."""
        found = tuple(unit for unit in units if unit in self._units and self._units[unit].is_standby)
        for unit in found:
            del self._units[unit]
        self._roles_changed()
        return found

    def take_caught_up(self) -> tuple[UnitId, ...]:
        """Return, once each, the standbys that have taken every published batch."""
        units = [unit for unit in self._standbys() if not unit.has_caught_up and unit.state is not None]
        found = [unit for unit in units if unit.done_batch >= self.published]
        for unit in found:
            unit.has_caught_up = True
        return tuple(sorted(unit.id for unit in found))

    def add_step(self, message: ApplyStep) -> None:
        """Remember a committed step for the units that have not taken it."""
        self.epoch = max(self.epoch, message.epoch)
        self.published = max(self.published, message.published)
        self._routing = message.routing or self._routing
        working = self._list_working()
        if not working or any(unit.position < message.step.position for unit in working):
            self._steps[message.step.position] = _KnownStep(message.step, message.cause, self._routing)

    def ready_steps(self, *, standby: bool = False) -> list[ReadyStep]:
        """Return the steps that units of one role can take now, oldest first; every unit is in at most one of them."""
        ready: dict[Position, list[UnitId]] = {}
        if standby and not self._follows:
            return []
        for unit in self._units.values():
            if unit.is_standby != standby:
                continue
            position = unit.next_position(self.published)
            if position is not None and position in self._steps:
                ready.setdefault(position, []).append(unit.id)
        found = []
        for position, units in sorted(ready.items()):
            known = self._steps[position]
            found.append(ReadyStep(known.step, tuple(sorted(units)), known.cause, known.routing, standby))
        return found

    def take(
        self,
        ready: ReadyStep,
        rows: Mapping[int, Sequence[pa.Table]],
        before_unit: Callable[[UnitId], None] = lambda _: None,
    ) -> StepResult:
        """Let the units take the step, each with its slices in order, and return their output.

        `rows` is by unit number; `before_unit` is called with each unit that has something to do.
        """
        step = ready.step
        known = [self._units[unit] for unit in ready.units if unit in self._units]
        units = [unit for unit in known if unit.next_position(self.published) == step.position]
        unreported = tuple(unit.id for unit in units if not unit.is_standby and unit.reported < step.position)
        result = StepResult(step.position, unreported, ready.cause, ready.routing)
        if not ready.standby:
            self._taken_routing = ready.routing
        for unit in units:
            output = self._take(unit, step, rows.get(unit.id.number, ()), before_unit)
            unit.position, unit.complete = step.position, step.complete
            if output is not None and not unit.is_standby:
                self._collect(unit, step, output, result)
        self._forget_steps()
        return result

    def begin_snapshot(self, message: TakeSnapshot) -> bool:
        """Start to capture, one unit at a time; False if this very snapshot began before."""
        if self._snapshot is not None and self._snapshot.lease == message.lease:
            return False
        self._snapshot = message
        here = [unit for unit in message.saved if unit in self._units]
        self._to_capture = sorted(unit for unit in here if not self._units[unit].is_standby)
        return True

    @property
    def left_to_capture(self) -> int:
        """The number of units that the snapshot has neither captured nor found unchanged."""
        return len(self._to_capture)

    def capture_next(self) -> Capture | UnchangedUnit | None:
        """Return the next unit that is between two batches, captured or unchanged; None if there is none yet."""
        for unit_id in self._to_capture:
            unit = self._units.get(unit_id)
            if unit is None or unit.is_standby:
                self._to_capture.remove(unit_id)
                return self.capture_next()
            if unit.state is not None and unit.complete:
                self._to_capture.remove(unit_id)
                return self._capture_if_changed(unit)
        return None

    def is_past(self, position: Position) -> bool:
        """Return whether every active unit has its state and has taken the step at that position."""
        return all(unit.state is not None and unit.position >= position for unit in self._active())

    @property
    def loading(self) -> int:
        """The number of units whose states have not arrived."""
        return sum(unit.state is None for unit in self._units.values())

    def steps_after(self, position: Position) -> Iterator[Step]:
        """Yield the known steps that follow, in order; sorts them when the caller asks for the first."""
        yield from (self._steps[later].step for later in sorted(self._steps) if later > position)

    def steps_to_follow(self, position: Position) -> Iterator[Step]:
        """Yield the known steps that follow and that standbys may take."""
        yield from (step for step in self.steps_after(position) if step.batch <= self.published)

    @property
    def standby_lag(self) -> int:
        """The number of published batches that some standby here has not taken."""
        done = min((unit.done_batch for unit in self._standbys()), default=self.published)
        return self.published - done

    @property
    def pending_steps(self) -> int:
        """The number of known steps that some active unit here has not taken. Any thread may ask."""
        return len(self._steps) - self._followed_steps

    def done_batch(self) -> Batch:
        """Return the newest batch that all active units here have completed."""
        return Batch(min((unit.done_batch for unit in self._active()), default=NO_BATCH))

    def settled_batch(self) -> Batch:
        """Return the newest batch that all units here have completed: no rows up to it are needed."""
        return Batch(min((unit.done_batch for unit in self._list_working()), default=NO_BATCH))

    def followed_batch(self) -> Batch:
        """Return the newest batch that all standbys here have completed."""
        return Batch(min((unit.done_batch for unit in self._standbys()), default=NO_BATCH))

    def newest_begun_batch(self) -> Batch:
        """Return the newest batch of which an active unit here has taken a step."""
        return Batch(max((unit.position.batch for unit in self._active()), default=NO_BATCH))

    def next_timer_ms(self) -> int | None:
        """Return when the earliest processing-time timer of an active unit here is due; None if none is set."""
        states = (unit.state for unit in self._active() if unit.state is not None)
        due = [at_ms for state in states if (at_ms := state.timers.next_ms("processing")) is not None]
        return min(due, default=None)

    def next_event_timers(self) -> dict[int, int]:
        """Return by stage when the earliest event-time timer of an active unit here is due, where one is set."""
        due: dict[int, int] = {}
        for unit in self._active():
            at_ms = None if unit.state is None else unit.state.timers.next_ms("event")
            if at_ms is not None:
                due[unit.id.stage] = min(at_ms, due.get(unit.id.stage, at_ms))
        return due

    def lookup(
        self, unit_id: UnitId, key: tuple[Any, ...], partials: pa.Table | None = None, *, stale: bool = False
    ) -> Answer:
        """Return what the operator answers for a key, as if it had got these partials of the key too.

        Raises `StateUnavailable` while the unit is elsewhere or loading; a standby answers only where that may be
        `stale`.
        """
        unit = self._units.get(unit_id)
        if unit is None or unit.state is None or (unit.is_standby and not stale):
            raise StateUnavailable(unit_id.task, None)
        return Answer(unit_id.number, unit.done_batch, self._runners[unit_id.stage].lookup(unit.state, key, partials))

    def units_of_stage(self, stage: int) -> list[UnitId]:
        """Return the active units of a stage."""
        return [unit.id for unit in self._active() if unit.id.stage == stage]

    def statistics(self, *, standby: bool = False) -> tuple[UnitStatistics, ...]:
        """Return what was measured of the standbys, or of all other units."""
        units = (unit for unit in self._units.values() if unit.is_standby == standby)
        return tuple(UnitStatistics(unit.id, unit.rows, unit.seconds, unit.state_bytes) for unit in units)

    @property
    def routing(self) -> Routing | None:
        """The routing as of the newest command; None before the first."""
        return self._routing

    @property
    def groupings_epoch(self) -> int:
        """The epoch of the groupings of the newest step that was taken: commands may be ahead of it."""
        routing = self._taken_routing or self._routing
        return 0 if routing is None else routing.groupings.epoch

    def states(self) -> Iterator[tuple[UnitId, UnitState, int]]:
        """Yield every unit that has its state, with the size of that state when it was measured last."""
        yield from ((unit.id, unit.state, unit.state_bytes) for unit in self._units.values() if unit.state is not None)

    def measure_states(self) -> None:
        """Bring the sizes of states that changed up to date."""
        for unit in self._units.values():
            if unit.state is not None and not unit.is_measured:
                unit.is_measured = True
                unit.state_bytes = self._runners[unit.id.stage].size(unit.state)

    def _list_working(self) -> list[HostedUnit]:
        return [unit for unit in self._units.values() if not unit.is_released]

    def _active(self) -> list[HostedUnit]:
        return [unit for unit in self._units.values() if unit.is_active]

    def _standbys(self) -> list[HostedUnit]:
        return [unit for unit in self._units.values() if unit.is_standby] if self._follows else []

    def _take(
        self, unit: HostedUnit, step: Step, slices: Sequence[pa.Table], before_unit: Callable[[UnitId], None]
    ) -> StepOutput | None:
        runner = self._runners[unit.id.stage]
        moment = runner.moment(unit.id, step.batch, step.round, step.time)
        assert unit.state is not None  # noqa: S101 - for the type checker; next_position has checked it
        if not slices and not runner.is_due(unit.state, moment):
            return None
        before_unit(unit.id)
        started = time.perf_counter()
        if self._isolate is not None and step.position in unit.isolated:
            unit.state, output = self._isolate(runner, unit.state, slices, moment)
        else:
            output = runner.step(unit.state, slices, moment)
        seconds = time.perf_counter() - started
        unit.rows += output.rows
        unit.seconds += seconds
        if self.observe_step is not None and not unit.is_standby and unit.reported < step.position:
            self.observe_step(unit.id, slices, output, seconds)
        if not runner.operator.stateless:
            unit.changed, unit.is_measured = step.batch, False
        return output

    def _collect(self, unit: HostedUnit, step: Step, output: StepOutput, result: StepResult) -> None:
        """Add the output of one unit to that of the step, unless the driver has it already."""
        if unit.reported >= step.position:
            self.replayed_rows += output.rows
            return
        stage = unit.id.stage
        result.rows += output.rows
        if output.sink is not None and output.sink.num_rows:
            result.results.setdefault(stage, []).append(_with_number(output.sink, unit.id))
        for target, rows in self._runners[stage].emitted(output):
            result.emitted.setdefault(target, []).append(rows)
        if output.parts is not None:
            result.parts.append(output.parts)
        if output.quarantined is not None and output.quarantined.num_rows:
            result.quarantined.append(_with_number(output.quarantined, unit.id))

    def _capture_if_changed(self, unit: HostedUnit) -> Capture | UnchangedUnit:
        assert self._snapshot is not None  # noqa: S101 - for the type checker; there is something to capture
        saved = self._snapshot.saved[unit.id]
        if unit.changed <= saved or unit.position.batch <= saved:
            return UnchangedUnit(unit.id, unit.changed, unit.position.batch)
        return self._capture(unit)

    def _capture(self, unit: HostedUnit) -> Capture:
        assert unit.state is not None  # noqa: S101 - for the type checker; the callers have checked it
        runner = self._runners[unit.id.stage]
        return Capture(unit.id, runner.capture(unit.state), unit.position.batch, runner.version)

    def _roles_changed(self) -> None:
        roles = {unit.is_standby for unit in self._units.values()}
        self._follows, self.only_follows = True in roles, roles == {True}
        self._forget_steps()

    def _forget_steps(self) -> None:
        """Forget steps that all units here have taken. A node without units keeps them: it may get some next."""
        if working := self._list_working():
            oldest = min(unit.position for unit in working)
            for position in [position for position in self._steps if position <= oldest]:
                del self._steps[position]
        self._followed_steps = 0
        if self._follows:
            taken = min(
                (unit.position for unit in working if not unit.is_standby), default=max(self._steps, default=None)
            )
            self._followed_steps = 0 if taken is None else sum(position <= taken for position in self._steps)


def _with_number(rows: pa.Table, unit: UnitId) -> pa.Table:
    """Return the rows with a column that says which unit made them."""
    return rows.append_column(UNIT, pa.repeat(pa.scalar(unit.number, pa.int64()), rows.num_rows))
