"""What a node does next: which units it has, where each of them is in the sequence of steps, what is left to take.

A unit takes every committed step once, in order. Units on one node need not be at the same step: one that was just
adopted repeats old steps while the others go on. So there is no difference between replay and normal work but this:
what a unit put out in steps that were reported before is thrown away.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from elastic.errors import StateUnavailable
from elastic.operators.calls import UnitState
from elastic.operators.execution import StageRunner, StepOutput
from elastic.operators.moment import Moment
from elastic.results import SLOT
from elastic.routing.slots import stage_of, task_of_slot
from elastic.runtime.protocol.messages import Adopt, Apply, Forget, Held, Release, Snapshot, Unchanged
from elastic.runtime.protocol.statistics import UnitStatistics
from elastic.runtime.protocol.steps import Position, Step, end_of
from storage.state import StateRef


@dataclass
class _Unit:
    """One unit of state, after the step at `position`; `state` is None while it is being loaded."""

    slot: int
    position: Position
    complete: bool  # whether that step ended its batch
    changed: int  # the last batch that may have changed the state
    reported: Position
    epoch: int  # in which it came here
    saved: StateRef | None  # what it is loaded from
    isolated: tuple[Position, ...] = ()  # steps that a child process has to try
    last_batch: int | None = None  # if it leaves: the batch after which it stops
    state: UnitState | None = None
    measured: int = -2  # the value of `changed` when the size was measured last
    statistics: UnitStatistics = field(default_factory=UnitStatistics)

    @property
    def is_released(self) -> bool:
        """It has stopped, and is kept for the case that its new node does not get it."""
        stopped = self.last_batch is not None and self.complete and self.position.batch >= self.last_batch
        return stopped and self.state is not None

    @property
    def next_position(self) -> Position | None:
        """Of the step that it takes next; None if it takes no more, or is not ready."""
        if self.state is None or self.is_released:
            return None
        batch, round_ = self.position
        return Position(batch + 1, 0) if self.complete else Position(batch, round_ + 1)


class Work(NamedTuple):
    """A step, and the units on this node that can take it now."""

    step: Step
    slots: tuple[int, ...]


@dataclass
class Taken:
    """What units put out in a step: rows of `emitted` are for the next round, by stage, in the order of emitters."""

    position: Position
    slots: tuple[int, ...]
    results: dict[int, list[pa.Table]] = field(default_factory=dict)  # by stage, each with its _slot
    emitted: dict[int, list[pa.Table]] = field(default_factory=dict)
    quarantined: list[pa.Table] = field(default_factory=list)
    rows: int = 0


class Capture(NamedTuple):
    """A copy of a unit's state, right as of a batch, that later steps do not change."""

    slot: int
    state: Any
    batch: int


Isolate = Callable[[StageRunner, UnitState, Sequence[pa.Table], Moment], tuple[UnitState, StepOutput]]


class Host:
    """The units of one incarnation of a node. One thread at a time may call it.

    `isolate` takes a step in another process and returns the state after it, with what came out; a step that has
    killed processes is taken so.
    """

    def __init__(self, runners: Sequence[StageRunner], isolate: Isolate | None = None) -> None:
        self._isolate = isolate
        self.epoch = 0
        self.replayed_rows = 0
        self._runners = runners
        self._units: dict[int, _Unit] = {}
        self._steps: dict[Position, Step] = {}
        self._snapshot: Snapshot | None = None
        self._to_capture: list[int] = []

    def adopt(self, message: Adopt) -> tuple[Held, ...]:
        """Units to load now; those that are here already are not loaded again.

        One that is still being loaded is, if there is another state for it: the one before may never arrive.
        """
        self.epoch = max(self.epoch, message.epoch)
        new = tuple(held for held in message.units if self._is_new(held, message.epoch))
        for held in new:
            changed = held.state.batch if held.state else -1
            self._units[held.slot] = _Unit(
                held.slot, end_of(held.through), True, changed, held.reported, message.epoch, held.state, held.isolated
            )
        self._steps.update((step.position, step) for step in message.steps)
        self._forget_steps()
        return new

    def awaits(self, held: Held) -> bool:
        """Whether this state of the unit is still to be loaded: not there yet, and no other one in its place."""
        unit = self._units.get(held.slot)
        return unit is not None and unit.state is None and unit.saved == held.state

    def loaded(self, held: Held, saved: Any) -> bool:
        """The saved state has arrived (None: there is none), unless nobody awaits it; the unit can take its steps."""
        if not self.awaits(held):
            return False
        runner = self._runners[stage_of(held.slot)]
        self._units[held.slot].state = runner.new_state() if saved is None else runner.restore(saved)
        return True

    def _is_new(self, held: Held, epoch: int) -> bool:
        """A unit that was released comes back in a later epoch."""
        unit = self._units.get(held.slot)
        if unit is None or (unit.state is None and unit.saved != held.state):
            return True
        return unit.last_batch is not None and epoch > unit.epoch

    def release(self, message: Release) -> tuple[int, ...]:
        """Units that stop, all after the same batch; those that came after this was said stay.

        After the same one, because a batch with several rounds ends for nobody before it ends for all: one unit that
        stopped before a batch would keep another one in it, and both would wait for each other.
        """
        self.epoch = max(self.epoch, message.epoch)
        units = [self._units[slot] for slot in message.slots if slot in self._units]
        leaving = [unit for unit in units if unit.epoch <= message.epoch]
        last_batch = max((unit.position.batch for unit in leaving), default=None)
        for unit in leaving:
            unit.last_batch, unit.epoch = last_batch, message.epoch
        return tuple(unit.slot for unit in leaving)

    def capture_released(self, slot: int) -> Capture | None:
        """The state of a unit that has stopped; None while it has not."""
        unit = self._units.get(slot)
        return self._capture(unit) if unit is not None and unit.is_released else None

    def forget(self, message: Forget) -> None:
        for slot in message.slots:
            unit = self._units.get(slot)
            if unit is not None and unit.last_batch is not None and unit.epoch <= message.epoch:
                del self._units[slot]
        self._forget_steps()

    def apply(self, message: Apply) -> None:
        self.epoch = max(self.epoch, message.epoch)
        working = self._working()
        if not working or any(unit.position < message.step.position for unit in working):
            self._steps[message.step.position] = message.step

    def works(self) -> list[Work]:
        """What can be done now, oldest step first; every unit is in at most one of them."""
        ready: dict[Position, list[int]] = {}
        for unit in self._units.values():
            position = unit.next_position
            if position is not None and position in self._steps:
                ready.setdefault(position, []).append(unit.slot)
        return [Work(self._steps[position], tuple(sorted(slots))) for position, slots in sorted(ready.items())]

    def take(
        self, work: Work, rows: Mapping[int, Sequence[pa.Table]], before_unit: Callable[[int], None] = lambda _: None
    ) -> Taken:
        """Let the units take the step, each with its slices in order; `before_unit` hears of each that has work."""
        step = work.step
        here = [self._units[slot] for slot in work.slots if slot in self._units]
        units = [unit for unit in here if unit.next_position == step.position]
        taken = Taken(step.position, tuple(unit.slot for unit in units if unit.reported < step.position))
        for unit in units:
            output = self._take(unit, step, rows.get(unit.slot, ()), before_unit)
            unit.position, unit.complete = step.position, step.complete
            self._put_out(unit, step, output, taken)
        self._forget_steps()
        return taken

    def begin_snapshot(self, message: Snapshot) -> bool:
        """Start to capture, one unit at a time; False if this very snapshot was begun before."""
        if self._snapshot is not None and self._snapshot.lease == message.lease:
            return False
        self._snapshot = message
        self._to_capture = sorted(slot for slot in message.saved if slot in self._units)
        return True

    @property
    def left_to_capture(self) -> int:
        return len(self._to_capture)

    def next_capture(self) -> Capture | Unchanged | None:
        """The next unit that is between two batches, captured or unchanged; None if there is none at the moment."""
        for slot in self._to_capture:
            unit = self._units.get(slot)
            if unit is None:
                self._to_capture.remove(slot)
                return self.next_capture()
            if unit.state is not None and unit.complete:
                self._to_capture.remove(slot)
                return self._captured(unit)
        return None

    def is_past(self, position: Position) -> bool:
        """Whether every unit has its state and has taken the step at that position."""
        return all(unit.state is not None and unit.position >= position for unit in self._working())

    @property
    def loading(self) -> int:
        return sum(unit.state is None for unit in self._units.values())

    def steps_after(self, position: Position) -> Iterator[Step]:
        """What is known to follow, in order; sorted only when somebody asks for the first."""
        yield from (self._steps[later] for later in sorted(self._steps) if later > position)

    @property
    def waiting_steps(self) -> int:
        """Known steps that some unit here has not taken."""
        return len(self._steps)

    def done_batch(self) -> int:
        """The newest batch that all units here have left behind."""
        return min((unit.position.batch - (not unit.complete) for unit in self._working()), default=-1)

    def next_timer_ms(self) -> int | None:
        """When the earliest processing-time timer of a unit here is due; None if none is set."""
        states = (unit.state for unit in self._working() if unit.state is not None)
        due = [at_ms for state in states if (at_ms := state.timers.next_ms("processing")) is not None]
        return min(due, default=None)

    def lookup(self, slot: int, key: tuple[Any, ...]) -> Any:
        """What the operator says about a key; `StateUnavailable` while the unit is elsewhere or behind."""
        unit = self._units.get(slot)
        if unit is None or unit.state is None:
            raise StateUnavailable(task_of_slot(slot), None)
        return self._runners[stage_of(slot)].lookup(unit.state, key)

    def statistics(self) -> dict[int, UnitStatistics]:
        return {slot: unit.statistics for slot, unit in self._units.items()}

    def measure_changed(self) -> None:
        """Bring the sizes of states that changed up to date."""
        for unit in self._units.values():
            if unit.state is not None and unit.measured != unit.changed:
                unit.measured = unit.changed
                unit.statistics.state_bytes = self._runners[stage_of(unit.slot)].size(unit.state)

    def _working(self) -> list[_Unit]:
        return [unit for unit in self._units.values() if not unit.is_released]

    def _take(
        self, unit: _Unit, step: Step, slices: Sequence[pa.Table], before_unit: Callable[[int], None]
    ) -> StepOutput | None:
        runner = self._runners[stage_of(unit.slot)]
        moment = Moment(
            unit.slot,
            task_of_slot(unit.slot),
            step.batch,
            step.round,
            step.time.timestamp_ms,
            step.time.watermark_ms,
            step.time.next_watermark_ms,
        )
        assert unit.state is not None  # noqa: S101 - for the type checker; next_position has looked
        if not slices and not runner.due(unit.state, moment):
            return None
        before_unit(unit.slot)
        started = time.perf_counter()
        if self._isolate is not None and step.position in unit.isolated:
            unit.state, output = self._isolate(runner, unit.state, slices, moment)
        else:
            output = runner.step(unit.state, slices, moment)
        unit.statistics.add(output.rows, time.perf_counter() - started)
        if not runner.operator.stateless:
            unit.changed = step.batch
        return output

    def _put_out(self, unit: _Unit, step: Step, output: StepOutput | None, taken: Taken) -> None:
        if output is None:
            return
        if unit.reported >= step.position:
            self.replayed_rows += output.rows
            return
        stage = stage_of(unit.slot)
        taken.rows += output.rows
        if output.sink is not None and output.sink.num_rows:
            taken.results.setdefault(stage, []).append(_placed(output.sink, unit.slot))
        for target, rows in ((stage + 1, output.next), (stage, output.self_)):
            if rows is not None and rows.num_rows:
                taken.emitted.setdefault(target, []).append(rows)
        if output.quarantined is not None and output.quarantined.num_rows:
            taken.quarantined.append(_placed(output.quarantined, unit.slot))

    def _captured(self, unit: _Unit) -> Capture | Unchanged:
        assert self._snapshot is not None  # noqa: S101 - somebody has begun one
        if unit.changed <= self._snapshot.saved[unit.slot]:
            return Unchanged(unit.slot, unit.changed, unit.position.batch)
        return self._capture(unit)

    def _capture(self, unit: _Unit) -> Capture:
        assert unit.state is not None  # noqa: S101 - for the type checker; whoever calls has looked
        return Capture(unit.slot, self._runners[stage_of(unit.slot)].capture(unit.state), unit.position.batch)

    def _forget_steps(self) -> None:
        """Steps that all units here have taken. A node without units keeps what it hears: an adoption is on its way."""
        if working := self._working():
            oldest = min(unit.position for unit in working)
            for position in [position for position in self._steps if position <= oldest]:
                del self._steps[position]


def _placed(rows: pa.Table, slot: int) -> pa.Table:
    """With a column that says where they come from."""
    return rows.append_column(SLOT, pa.repeat(pa.scalar(slot, pa.int64()), rows.num_rows))
