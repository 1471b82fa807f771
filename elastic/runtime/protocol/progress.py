"""How far a batch is: which units took its rounds, and what they put out."""

from dataclasses import dataclass, field

from elastic.results import ResultRef
from elastic.runtime.protocol.messages import Applied
from elastic.runtime.protocol.steps import Position, Step
from storage.state import LogRef


@dataclass
class _Round:
    """A committed step, and the units that have not reported it."""

    step: Step
    left: set[int]


@dataclass
class BatchProgress:
    """A committed batch that is not published yet.

    Invariant: what a unit put out in a step is here at most once, so the results and the next round hold every record
    once. In the life of a controller that found the batch half done, units report its earlier rounds again: their
    results were known to the controller before it only.
    """

    slots: frozenset[int]
    rounds: list[_Round] = field(default_factory=list)
    emitted: list[LogRef] = field(default_factory=list)  # in the newest round
    emitted_stages: set[int] = field(default_factory=set)
    results: list[ResultRef] = field(default_factory=list)
    next_round_asked: bool = False
    publish_asked: bool = False

    @property
    def newest(self) -> Step:
        return self.rounds[-1].step

    @property
    def is_applied(self) -> bool:
        """Whether all units have taken all rounds that there are."""
        return not any(one.left for one in self.rounds)

    def add_step(self, step: Step) -> None:
        self.rounds.append(_Round(step, set(self.slots)))
        self.emitted, self.emitted_stages, self.next_round_asked = [], set(), False

    def is_waiting_for(self, slots: tuple[int, ...], before: Position) -> bool:
        """Whether one of these units has yet to report a step before that position."""
        return any(one.step.position < before and not one.left.isdisjoint(slots) for one in self.rounds)

    def add(self, report: Applied) -> None:
        """Take note, unless the report says nothing new."""
        found = next((one for one in self.rounds if one.step.position == report.position), None)
        if found is None or found.left.isdisjoint(report.slots):
            return
        if not found.left.issuperset(report.slots):
            # Held.reported makes this impossible: a unit never reports again what the controller has heard of it.
            raise AssertionError(f"{report} repeats a part of what was reported before")
        found.left.difference_update(report.slots)
        if report.results is not None:
            self.results.append(report.results)
        if report.emitted is not None and found is self.rounds[-1]:
            # What an earlier round emitted is committed as the round after it.
            self.emitted.append(report.emitted)
            self.emitted_stages.update(report.emitted_stages)

    def reported(self, slot: int) -> Position | None:
        """The last round that the unit has reported, with all before it; None if it has not reported the first."""
        reported = None
        for one in self.rounds:
            if slot in one.left:
                break
            reported = one.step.position
        return reported
