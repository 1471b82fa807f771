"""What a node does next: which units it hosts, where each of them is in the sequence of steps, which steps are left.

A unit takes every committed step once, in order. Units on one node need not be at the same step: one that was just
installed repeats old steps while the others take new ones. Replay differs from normal work in one point only: the
output of a step that was reported before is dropped.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.core.ids import FIRST_EPOCH, NO_BATCH, Batch, Epoch, UnitId
from elastic.core.messages import (
    ApplyStep,
    DropUnits,
    InstallUnits,
    ReleaseUnits,
    TakeSnapshot,
    UnchangedUnit,
    UnitHandle,
)
from elastic.core.statistics import UnitStatistics
from elastic.core.steps import Position, Step, end_of
from elastic.errors import StateUnavailable
from elastic.operators.calls import UnitState
from elastic.operators.context import Moment
from elastic.operators.stage_runner import StageRunner, StepOutput
from elastic.results import UNIT
from elastic.routing import Routing
from storage.state import StateRef


@dataclass
class _Unit:
    """One unit of state, after the step at `position`; `state` is None while it is being loaded."""

    id: UnitId
    position: Position
    complete: bool  # whether that step ended its batch
    changed: Batch  # the last batch that may have changed the state
    reported: Position
    epoch: Epoch  # in which it was installed, or released
    saved: StateRef | None  # what it is loaded from
    isolated: tuple[Position, ...] = ()  # steps that a child process has to try
    last_batch: Batch | None = None  # if it is being released: the batch after which it stops
    state: UnitState | None = None
    measured: int = -2  # the value of `changed` when the size was measured last
    rows: int = 0
    seconds: float = 0.0
    state_bytes: int = 0

    @property
    def is_released(self) -> bool:
        """Whether it has stopped. It is kept in case that its new node does not get it."""
        stopped = self.last_batch is not None and self.complete and self.position.batch >= self.last_batch
        return stopped and self.state is not None

    @property
    def next_position(self) -> Position | None:
        """The position of the step that it takes next; None if it takes no more, or is not ready."""
        if self.state is None or self.is_released:
            return None
        batch, round_ = self.position
        return Position(Batch(batch + 1), 0) if self.complete else Position(batch, round_ + 1)


class ReadyStep(NamedTuple):
    """A step, the units on this node that can take it now, and what the command that named the step came with."""

    step: Step
    units: tuple[UnitId, ...]
    cause: str = ""
    routing: Routing | None = None  # of what the step emits


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
    """A copy of a unit's state as of a batch; later steps do not change it."""

    unit: UnitId
    state: Any
    batch: Batch


class Answer(NamedTuple):
    """What a unit answers for a key; its state includes all rounds of `batch`, and perhaps some of the next one."""

    unit_number: int
    batch: Batch
    value: Any


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
        self._routing: Routing | None = None  # as of the newest command; None before the first
        self._taken_routing: Routing | None = None  # of the newest step that was taken
        self.replayed_rows = 0
        self._runners = runners
        self._units: dict[UnitId, _Unit] = {}
        self._steps: dict[Position, _KnownStep] = {}
        self._snapshot: TakeSnapshot | None = None
        self._to_capture: list[UnitId] = []

    def install(self, message: InstallUnits) -> tuple[UnitHandle, ...]:
        """Return the units to load now; those that are here already are not loaded again.

        A unit that is still being loaded is loaded again if the message has another state for it: the state before may
        never arrive.
        """
        self.epoch = max(self.epoch, message.epoch)
        new = tuple(handle for handle in message.units if self._is_new(handle, message.epoch))
        for handle in new:
            changed = Batch(handle.state.batch) if handle.state else NO_BATCH
            self._units[handle.unit] = _Unit(
                handle.unit,
                end_of(handle.through),
                True,
                changed,
                handle.reported,
                message.epoch,
                handle.state,
                handle.isolated,
            )
        self._routing = message.routing or self._routing
        known = [_KnownStep(step, message.cause, self._routing) for step in message.steps]
        self._steps.update((one.step.position, one) for one in known)
        self._forget_steps()
        return new

    def is_waiting_for(self, handle: UnitHandle) -> bool:
        """Return whether this state of the unit is still to be loaded: not there yet, and not replaced by another."""
        unit = self._units.get(handle.unit)
        return unit is not None and unit.state is None and unit.saved == handle.state

    def set_state(self, handle: UnitHandle, saved: Any) -> bool:
        """Give a unit its saved state (None: an empty one), so that it can take steps; False if it waits for none."""
        if not self.is_waiting_for(handle):
            return False
        runner = self._runners[handle.unit.stage]
        self._units[handle.unit].state = runner.new_state() if saved is None else runner.restore(saved)
        return True

    def release(self, message: ReleaseUnits) -> tuple[UnitId, ...]:
        """Let units stop, all after the same batch, and return them; units installed in a later epoch stay.

        After the same batch, because a batch with several rounds ends for all units or for none: one unit that stopped
        before a batch would keep another one in it, and both would wait for each other.
        """
        self.epoch = max(self.epoch, message.epoch)
        units = [self._units[unit] for unit in message.units if unit in self._units]
        leaving = [unit for unit in units if unit.epoch <= message.epoch]
        last_batch = max((unit.position.batch for unit in leaving), default=None)
        for unit in leaving:
            unit.last_batch, unit.epoch = last_batch, message.epoch
        return tuple(unit.id for unit in leaving)

    def capture_released(self, unit_id: UnitId) -> Capture | None:
        """Return the state of a unit that has stopped; None while it has not."""
        unit = self._units.get(unit_id)
        return self._capture(unit) if unit is not None and unit.is_released else None

    def drop(self, message: DropUnits) -> None:
        """Drop released units, except those that were installed again in a later epoch."""
        for unit_id in message.units:
            unit = self._units.get(unit_id)
            if unit is not None and unit.last_batch is not None and unit.epoch <= message.epoch:
                del self._units[unit_id]
        self._forget_steps()

    def add_step(self, message: ApplyStep) -> None:
        """Remember a committed step for the units that have not taken it."""
        self.epoch = max(self.epoch, message.epoch)
        self._routing = message.routing or self._routing
        working = self._working()
        if not working or any(unit.position < message.step.position for unit in working):
            self._steps[message.step.position] = _KnownStep(message.step, message.cause, self._routing)

    def ready_steps(self) -> list[ReadyStep]:
        """Return the steps that can be taken now, oldest first; every unit is in at most one of them."""
        ready: dict[Position, list[UnitId]] = {}
        for unit in self._units.values():
            position = unit.next_position
            if position is not None and position in self._steps:
                ready.setdefault(position, []).append(unit.id)
        found = []
        for position, units in sorted(ready.items()):
            known = self._steps[position]
            found.append(ReadyStep(known.step, tuple(sorted(units)), known.cause, known.routing))
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
        units = [unit for unit in known if unit.next_position == step.position]
        unreported = tuple(unit.id for unit in units if unit.reported < step.position)
        result = StepResult(step.position, unreported, ready.cause, ready.routing)
        self._taken_routing = ready.routing
        for unit in units:
            output = self._take(unit, step, rows.get(unit.id.number, ()), before_unit)
            unit.position, unit.complete = step.position, step.complete
            if output is not None:
                self._collect(unit, step, output, result)
        self._forget_steps()
        return result

    def begin_snapshot(self, message: TakeSnapshot) -> bool:
        """Start to capture, one unit at a time; False if this very snapshot began before."""
        if self._snapshot is not None and self._snapshot.lease == message.lease:
            return False
        self._snapshot = message
        self._to_capture = sorted(unit for unit in message.saved if unit in self._units)
        return True

    @property
    def left_to_capture(self) -> int:
        """The number of units that the snapshot has neither captured nor found unchanged."""
        return len(self._to_capture)

    def capture_next(self) -> Capture | UnchangedUnit | None:
        """Return the next unit that is between two batches, captured or unchanged; None if there is none yet."""
        for unit_id in self._to_capture:
            unit = self._units.get(unit_id)
            if unit is None:
                self._to_capture.remove(unit_id)
                return self.capture_next()
            if unit.state is not None and unit.complete:
                self._to_capture.remove(unit_id)
                return self._capture_if_changed(unit)
        return None

    def is_past(self, position: Position) -> bool:
        """Return whether every unit has its state and has taken the step at that position."""
        return all(unit.state is not None and unit.position >= position for unit in self._working())

    @property
    def loading(self) -> int:
        """The number of units whose states have not arrived."""
        return sum(unit.state is None for unit in self._units.values())

    def steps_after(self, position: Position) -> Iterator[Step]:
        """Yield the known steps that follow, in order; sorts them when the caller asks for the first."""
        yield from (self._steps[later].step for later in sorted(self._steps) if later > position)

    @property
    def pending_steps(self) -> int:
        """The number of known steps that some unit here has not taken."""
        return len(self._steps)

    def done_batch(self) -> Batch:
        """Return the newest batch that all units here have completed."""
        batches = (unit.position.batch - (not unit.complete) for unit in self._working())
        return Batch(min(batches, default=NO_BATCH))

    def begun_batch(self) -> Batch:
        """Return the newest batch of which a unit here has taken a step."""
        return Batch(max((unit.position.batch for unit in self._working()), default=NO_BATCH))

    def next_timer_ms(self) -> int | None:
        """Return when the earliest processing-time timer of a unit here is due; None if none is set."""
        states = (unit.state for unit in self._working() if unit.state is not None)
        due = [at_ms for state in states if (at_ms := state.timers.next_ms("processing")) is not None]
        return min(due, default=None)

    def lookup(self, unit_id: UnitId, key: tuple[Any, ...], partials: pa.Table | None = None) -> Answer:
        """Return what the operator answers for a key, as if it had got these partials of the key too.

        Raises `StateUnavailable` while the unit is elsewhere or loading.
        """
        unit = self._units.get(unit_id)
        if unit is None or unit.state is None:
            raise StateUnavailable(unit_id.task, None)
        runner, batch = self._runners[unit_id.stage], Batch(unit.position.batch - (not unit.complete))
        return Answer(unit_id.number, batch, runner.lookup(unit.state, key, partials))

    def units_of_stage(self, stage: int) -> list[UnitId]:
        return [unit.id for unit in self._working() if unit.id.stage == stage]

    def statistics(self) -> tuple[UnitStatistics, ...]:
        return tuple(
            UnitStatistics(unit.id, unit.rows, unit.seconds, unit.state_bytes) for unit in self._units.values()
        )

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
            if unit.state is not None and unit.measured != unit.changed:
                unit.measured = unit.changed
                unit.state_bytes = self._runners[unit.id.stage].size(unit.state)

    def _is_new(self, handle: UnitHandle, epoch: Epoch) -> bool:
        """Return whether to load the unit: also one that was released and returns in a later epoch."""
        unit = self._units.get(handle.unit)
        if unit is None or (unit.state is None and unit.saved != handle.state):
            return True
        return unit.last_batch is not None and epoch > unit.epoch

    def _working(self) -> list[_Unit]:
        return [unit for unit in self._units.values() if not unit.is_released]

    def _take(
        self, unit: _Unit, step: Step, slices: Sequence[pa.Table], before_unit: Callable[[UnitId], None]
    ) -> StepOutput | None:
        runner = self._runners[unit.id.stage]
        moment = Moment(
            unit.id,
            step.batch,
            step.round,
            step.time.timestamp_ms,
            step.time.watermark_ms,
            step.time.next_watermark_ms,
        )
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
        if self.observe_step is not None and unit.reported < step.position:
            self.observe_step(unit.id, slices, output, seconds)
        if not runner.operator.stateless:
            unit.changed = step.batch
        return output

    def _collect(self, unit: _Unit, step: Step, output: StepOutput, result: StepResult) -> None:
        """Add the output of one unit to that of the step, unless the driver has it already."""
        if unit.reported >= step.position:
            self.replayed_rows += output.rows
            return
        stage = unit.id.stage
        result.rows += output.rows
        if output.sink is not None and output.sink.num_rows:
            result.results.setdefault(stage, []).append(_with_number(output.sink, unit.id))
        for target, rows in ((stage + 1, output.next), (stage, output.self_)):
            if rows is not None and rows.num_rows:
                result.emitted.setdefault(target, []).append(rows)
        if output.parts is not None:
            result.parts.append(output.parts)
        if output.quarantined is not None and output.quarantined.num_rows:
            result.quarantined.append(_with_number(output.quarantined, unit.id))

    def _capture_if_changed(self, unit: _Unit) -> Capture | UnchangedUnit:
        assert self._snapshot is not None  # noqa: S101 - for the type checker; there is something to capture
        if unit.changed <= self._snapshot.saved[unit.id]:
            return UnchangedUnit(unit.id, unit.changed, unit.position.batch)
        return self._capture(unit)

    def _capture(self, unit: _Unit) -> Capture:
        assert unit.state is not None  # noqa: S101 - for the type checker; the callers have checked it
        return Capture(unit.id, self._runners[unit.id.stage].capture(unit.state), unit.position.batch)

    def _forget_steps(self) -> None:
        """Forget steps that all units here have taken. A node without units keeps them: it may get some next."""
        if working := self._working():
            oldest = min(unit.position for unit in working)
            for position in [position for position in self._steps if position <= oldest]:
                del self._steps[position]


def _with_number(rows: pa.Table, unit: UnitId) -> pa.Table:
    """Return the rows with a column that says which unit made them."""
    return rows.append_column(UNIT, pa.repeat(pa.scalar(unit.number, pa.int64()), rows.num_rows))
