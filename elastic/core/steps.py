"""Steps: committed rounds of batches, in the one order in which every unit of state takes them."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from elastic.core.ids import Batch
from storage.state import BatchTime, LogRef, Manifest


class Position(NamedTuple):
    """A place in the sequence of rounds; positions compare in the order of processing."""

    batch: Batch
    round: int


def end_of(batch: Batch) -> Position:
    """Return the position after every round of a batch, however many it has."""
    return Position(batch, 1 << 30)


@dataclass(frozen=True)
class Step:
    """One committed round of a batch: exactly these log objects, in sorted order, are its input.

    A batch ends with its `complete` step. Round 0 holds the rows of the source; later rounds hold what operators
    emitted.
    """

    position: Position
    complete: bool
    logs: tuple[LogRef, ...]
    time: BatchTime

    @property
    def batch(self) -> Batch:
        return self.position.batch

    @property
    def round(self) -> int:
        return self.position.round

    def to_json(self) -> list[Any]:
        """Return a list, not a dict: an `InstallUnits` may name thousands of steps."""
        return [*self.position, self.complete, [ref.to_json() for ref in self.logs], self.time.to_json()]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        batch, round_, complete, logs, time = document
        return cls(Position(batch, round_), complete, tuple(map(LogRef.from_json, logs)), BatchTime.from_json(time))


def steps_of(manifest: Manifest) -> tuple[Step, ...]:
    """Return every step that a unit may have to repeat: those above the low-water mark.

    A round without log objects leaves no trace in the manifest except that its batch is complete, and it changes no
    state. Round 0 is always there, because timers may fire in it, and so is the last round of an incomplete batch.
    """
    logs: dict[Position, list[LogRef]] = defaultdict(list)
    for ref in manifest.log:
        logs[Position(Batch(ref.batch), ref.round)].append(ref)
    rounds: dict[int, set[int]] = defaultdict(set)
    for position in logs:
        rounds[position.batch].add(position.round)
    if manifest.open_round is not None:
        rounds[manifest.open_round.batch].add(manifest.open_round.round)
    steps = []
    for time in manifest.times:
        numbers = sorted(rounds[time.batch] | {0})
        is_over = time.batch <= manifest.last_batch
        for round_ in numbers:
            position = Position(Batch(time.batch), round_)
            complete = is_over and round_ == numbers[-1]
            steps.append(Step(position, complete, tuple(sorted(logs[position])), time))
    return tuple(sorted(steps, key=lambda step: step.position))
