"""Batches in flight: which steps are committed, which units have taken them, which results can be published."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from elastic.core import commands, events
from elastic.core.commands import Command
from elastic.core.ids import Batch, UnitId
from elastic.core.messages import StepApplied
from elastic.core.rekeying import Rekeyings
from elastic.core.steps import Position, Step, end_of, steps_of
from elastic.results import ResultRef
from elastic.routing import Groupings
from storage.state import LogRef, Manifest


@dataclass
class _Round:
    """A committed step, and the units that have not reported it."""

    step: Step
    missing: set[UnitId]


@dataclass
class _BatchInFlight:
    """A committed batch that is not published yet.

    Invariant: what a unit put out in a step is here at most once, so the results and the next round hold every record
    once. A driver that restarts in the middle of a batch gets the reports of its earlier rounds again: their results
    were known to the driver before it only.
    """

    units: frozenset[UnitId]
    rounds: list[_Round] = field(default_factory=list)
    may_emit: bool = True  # whether the newest round may emit records
    emitted: list[LogRef] = field(default_factory=list)  # in the newest round
    emitted_stages: set[int] = field(default_factory=set)
    results: list[ResultRef] = field(default_factory=list)
    next_round_requested: bool = False
    publish_requested: bool = False

    @property
    def newest(self) -> Step:
        return self.rounds[-1].step

    @property
    def is_applied(self) -> bool:
        """Whether all units have taken all committed rounds."""
        return not any(one.missing for one in self.rounds)

    def add_step(self, step: Step, *, may_emit: bool) -> None:
        self.rounds.append(_Round(step, set(self.units)))
        self.may_emit = may_emit
        self.emitted, self.emitted_stages, self.next_round_requested = [], set(), False

    def awaits(self, units: Sequence[UnitId], before: Position) -> bool:
        """Whether one of these units has yet to report a step before that position."""
        return any(one.step.position < before and not one.missing.isdisjoint(units) for one in self.rounds)

    def add(self, report: StepApplied) -> None:
        """Record a report, unless it says nothing new."""
        found = next((one for one in self.rounds if one.step.position == report.position), None)
        if found is None or found.missing.isdisjoint(report.units):
            return
        if not found.missing.issuperset(report.units):
            # `UnitHandle.reported` makes this impossible: a unit never reports again what the driver has from it.
            raise AssertionError(f"{report} repeats a part of what was reported before")
        found.missing.difference_update(report.units)
        if report.results is not None:
            self.results.append(report.results)
        if report.emitted is not None and found is self.rounds[-1]:
            # What an earlier round emitted is committed as the round after it.
            self.emitted.append(report.emitted)
            self.emitted_stages.update(report.emitted_stages)

    def reported(self, unit: UnitId) -> Position | None:
        """Return the last round that the unit has reported, with all before it; None if it reported none."""
        reported = None
        for one in self.rounds:
            if unit in one.missing:
                break
            reported = one.step.position
        return reported


class Batches:
    """All steps that a unit may still have to take, and the batches whose results are not published.

    `emitting` says of every stage whether it may emit to another stage or to itself: a round that reaches only stages
    that do not is the last one of its batch.
    """

    def __init__(
        self,
        manifest: Manifest,
        published: Batch,
        emitting: Sequence[bool],
        units: frozenset[UnitId],
        rekeyings: Rekeyings,
        groupings: Callable[[], Groupings],
    ) -> None:
        self.published = published
        self._emitting = emitting
        # Round 0 has rows of the source, for any stage that reads an input, and timers, which fire in all stages.
        self._may_begin = any(emitting)
        self._units = units
        self._rekeyings = rekeyings
        self._groupings = groupings
        self._steps: list[Step] = list(steps_of(manifest))
        self._in_flight: dict[Batch, _BatchInFlight] = {}
        self._early: dict[str, list[StepApplied]] = {}  # by node: reports that overtook the one before them
        # The newest committed step.
        self.newest = self._steps[-1].position if self._steps else end_of(Batch(manifest.last_batch))
        for step in self._steps:
            if step.batch > published:
                self._track(step)

    @property
    def pending_batches(self) -> int:
        """Batches that are committed and not published."""
        return len(self._in_flight)

    @property
    def is_complete(self) -> bool:
        """Whether no batch has rounds to come, so that the next one may be committed."""
        return all(batch.newest.complete for batch in self._in_flight.values())

    def steps_after(self, batch: Batch) -> tuple[Step, ...]:
        return tuple(step for step in self._steps if step.batch > batch)

    def drop_steps(self, through: Batch) -> None:
        """Drop the steps that every unit's committed state includes."""
        self._steps = [step for step in self._steps if step.batch > through]

    def drop_reports(self, node: str) -> None:
        """Drop early reports of an incarnation that is no longer current."""
        self._early.pop(node, None)

    def batch_logged(self, event: events.BatchLogged) -> list[Command]:
        if event.batch <= self.newest.batch:
            return []
        complete = not self._may_begin and not self._rekeyings.is_due
        return [commands.CommitRound(event.batch, 0, event.logs, complete, event.time, event.source, self.published)]

    def round_committed(self, event: events.RoundCommitted) -> Step | None:
        """Return the step that all units take now; None for a repetition."""
        position = Position(event.batch, event.round)
        if position <= self.newest:
            return None
        step = Step(position, event.complete, tuple(sorted(event.logs)), event.time)
        self._steps.append(step)
        self.newest = position
        self._track(step)
        return step

    def step_applied(self, report: StepApplied) -> None:
        """Record a node's reports in the order of its steps, so that what a unit has reported has no gaps."""
        waiting = self._early.setdefault(report.node, [])
        waiting.append(report)
        waiting.sort(key=lambda early: early.position)
        for early in list(waiting):
            if not self._is_early(early):
                waiting.remove(early)
                if batch := self._in_flight.get(early.position.batch):
                    batch.add(early)

    def results_published(self, batch: Batch) -> None:
        if batch == self.published + 1:
            self.published = batch
            del self._in_flight[batch]

    def advance(self) -> list[Command]:
        """Return what has become possible: the next round of the newest batch, the results of the oldest."""
        decided: list[Command] = []
        for number, batch in self._in_flight.items():
            if batch.newest.complete and batch.is_applied:
                self._rekeyings.batch_applied(number)
            # Keys leave after the last rows. If no more can come, senders need not wait until these are processed.
            is_ready = batch.is_applied or (self._rekeyings.is_due and not batch.may_emit)
            if is_ready and not batch.newest.complete and not batch.next_round_requested:
                batch.next_round_requested = True
                decided.append(self._next_round(batch))
        oldest = self._in_flight.get(Batch(self.published + 1))
        if oldest is not None and oldest.is_applied and oldest.newest.complete and not oldest.publish_requested:
            oldest.publish_requested = True
            time = oldest.newest.time
            decided.append(commands.PublishResults(Batch(time.batch), tuple(oldest.results), time.timestamp_ms))
        return decided

    def reported(self, unit: UnitId) -> Position:
        """Return the last step whose output by this unit was reported; there are no gaps before it."""
        last = end_of(self.published)
        for number in sorted(self._in_flight):
            batch = self._in_flight[number]
            reported = batch.reported(unit)
            last = last if reported is None else reported
            if reported != batch.newest.position:
                break
        return last

    def reported_batch(self, unit: UnitId) -> Batch:
        """Return the newest batch whose output by this unit was reported as a whole, with all batches before it."""
        last = self.published
        for number in sorted(self._in_flight):
            newest = self._in_flight[number].newest
            if not newest.complete or self._in_flight[number].reported(unit) != newest.position:
                break
            last = number
        return last

    def has_reported(self, unit: UnitId, batch: int) -> bool:
        """Whether the output of this unit in all batches up to this one was reported."""
        return batch <= self.published or self.reported(unit) >= self._in_flight[Batch(batch)].newest.position

    def missing(self, batch: Batch) -> set[UnitId]:
        """Return the units that have to take a committed round of this batch."""
        found = self._in_flight.get(batch)
        return set() if found is None else set().union(*(one.missing for one in found.rounds))

    def _track(self, step: Step) -> None:
        if step.batch not in self._in_flight:
            self._in_flight[step.batch] = _BatchInFlight(self._units)
        self._in_flight[step.batch].add_step(step, may_emit=step.round > 0 or self._may_begin)

    def _is_early(self, report: StepApplied) -> bool:
        return any(batch.awaits(report.units, report.position) for batch in self._in_flight.values())

    def _next_round(self, batch: _BatchInFlight) -> commands.CommitRound:
        """Commit what the newest round emitted; if that is nothing and a rekeying is due, commit its orders."""
        step = batch.newest
        regrouping = None if batch.emitted else self._rekeyings.start_portion(step.batch, self._groupings())
        may_emit = regrouping is not None or any(self._emitting[stage] for stage in batch.emitted_stages)
        complete = not may_emit and not self._rekeyings.is_due
        return commands.CommitRound(
            step.batch, step.round + 1, tuple(batch.emitted), complete, step.time, None, self.published, regrouping
        )
