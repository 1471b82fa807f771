"""Batches on their way: which steps are committed, who has taken them, which results can be shown."""

from collections.abc import Sequence

from elastic.runtime.protocol import commands, events
from elastic.runtime.protocol.commands import Command
from elastic.runtime.protocol.messages import Applied
from elastic.runtime.protocol.progress import BatchProgress
from elastic.runtime.protocol.steps import Position, Step, end_of, steps_of
from storage.state import Manifest


class Batches:
    """All steps that a unit may still have to take, and the batches whose results are not published.

    `emitting` says of every stage whether it may emit to another stage or to itself: a round that reaches only stages
    that do not is the last one of its batch.
    """

    def __init__(self, manifest: Manifest, published: int, emitting: Sequence[bool], slots: frozenset[int]) -> None:
        self.published = published
        self._emitting = emitting
        self._slots = slots
        self._steps: list[Step] = list(steps_of(manifest))
        self._progress: dict[int, BatchProgress] = {}
        self._early: dict[str, list[Applied]] = {}  # by node: reports that overtook the one before them
        # The newest committed step.
        self.newest = self._steps[-1].position if self._steps else end_of(manifest.last_batch)
        for step in self._steps:
            if step.batch > published:
                self._track(step)

    @property
    def ahead(self) -> int:
        """How many count and are not applied everywhere."""
        return len(self._progress)

    @property
    def is_between(self) -> bool:
        """Whether a next batch may be committed: no batch has rounds to come."""
        return all(progress.newest.complete for progress in self._progress.values())

    def steps_after(self, batch: int) -> tuple[Step, ...]:
        return tuple(step for step in self._steps if step.batch > batch)

    def forget_steps(self, through: int) -> None:
        """Every unit's saved state includes these."""
        self._steps = [step for step in self._steps if step.batch > through]

    def forget_reports(self, node: str) -> None:
        """Nobody listens to that node any more."""
        self._early.pop(node, None)

    def logged(self, event: events.BatchLogged) -> list[Command]:
        if event.batch <= self.newest.batch:
            return []
        complete = not self._emitting[0]
        return [commands.CommitRound(event.batch, 0, event.logs, complete, event.time, event.source, self.published)]

    def committed(self, event: events.RoundCommitted) -> Step | None:
        """The step that all units take now; None if that is no news."""
        position = Position(event.batch, event.round)
        if position <= self.newest:
            return None
        step = Step(position, event.complete, tuple(sorted(event.logs)), event.time)
        self._steps.append(step)
        self.newest = position
        self._track(step)
        return step

    def applied(self, report: Applied) -> None:
        """Take a node's reports in the order of its steps, so that what a unit has reported has no gaps."""
        waiting = self._early.setdefault(report.node, [])
        waiting.append(report)
        waiting.sort(key=lambda early: early.position)
        for early in list(waiting):
            if not self._is_early(early):
                waiting.remove(early)
                if progress := self._progress.get(early.position.batch):
                    progress.add(early)

    def was_published(self, batch: int) -> bool:
        """Whether that is news."""
        if batch != self.published + 1:
            return False
        self.published = batch
        del self._progress[batch]
        return True

    def advance(self) -> list[Command]:
        """Ask for what has become possible: the next round of the newest batch, the results of the oldest."""
        decided: list[Command] = []
        for progress in self._progress.values():
            if progress.is_applied and not progress.newest.complete and not progress.next_round_asked:
                progress.next_round_asked = True
                decided.append(self._next_round(progress))
        oldest = self._progress.get(self.published + 1)
        if oldest is not None and oldest.is_applied and oldest.newest.complete and not oldest.publish_asked:
            oldest.publish_asked = True
            time = oldest.newest.time
            decided.append(commands.PublishResults(time.batch, tuple(oldest.results), time.timestamp_ms))
        return decided

    def reported(self, slot: int) -> Position:
        """The last step whose output by this unit is in hand; there are no gaps before it (see `applied`)."""
        last = end_of(self.published)
        for batch in sorted(self._progress):
            progress = self._progress[batch]
            reported = progress.reported(slot)
            last = last if reported is None else reported
            if reported != progress.newest.position:
                break
        return last

    def has_reported(self, slot: int, batch: int) -> bool:
        """Whether the output of this unit in all batches up to this one is in hand."""
        return batch <= self.published or self.reported(slot) >= self._progress[batch].newest.position

    def _track(self, step: Step) -> None:
        if step.batch not in self._progress:
            self._progress[step.batch] = BatchProgress(self._slots)
        self._progress[step.batch].add_step(step)

    def _is_early(self, report: Applied) -> bool:
        return any(progress.is_waiting_for(report.slots, report.position) for progress in self._progress.values())

    def _next_round(self, progress: BatchProgress) -> commands.CommitRound:
        step = progress.newest
        complete = not any(self._emitting[stage] for stage in progress.emitted_stages)
        return commands.CommitRound(
            step.batch, step.round + 1, tuple(progress.emitted), complete, step.time, None, self.published
        )
