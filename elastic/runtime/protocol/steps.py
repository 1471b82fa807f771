"""Steps: committed rounds of batches, in the one order in which every unit of state takes them."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from storage.state import BatchTime, LogRef, Manifest


class Position(NamedTuple):
    """A place in the sequence of rounds; positions compare in the order of processing."""

    batch: int
    round: int


def end_of(batch: int) -> Position:
    """After every round of a batch, however many it has."""
    return Position(batch, 1 << 30)


@dataclass(frozen=True)
class Step:
    """One committed round of a batch: exactly these log objects, in sorted order, are its input.

    A batch is over after its `complete` step. Round 0 holds what Spark sent; later rounds hold what operators emitted.
    """

    position: Position
    complete: bool
    logs: tuple[LogRef, ...]
    time: BatchTime

    @property
    def batch(self) -> int:
        return self.position.batch

    @property
    def round(self) -> int:
        return self.position.round

    def to_json(self) -> list[Any]:
        """A list, not a dict: an adoption may name thousands."""
        return [*self.position, self.complete, [ref.to_json() for ref in self.logs], list(self.time)]

    @classmethod
    def from_json(cls, document: list[Any]) -> Self:
        batch, round_, complete, logs, time = document
        return cls(Position(batch, round_), complete, tuple(map(LogRef.from_json, logs)), BatchTime(*time))


def steps_of(manifest: Manifest) -> tuple[Step, ...]:
    """Every step that some unit may have to take again: those above the low-water mark.

    A round in which nothing was logged leaves no trace but that its batch is complete, and it changes no state. Round 0
    is always there: timers may fire in it.
    """
    logs: dict[Position, list[LogRef]] = defaultdict(list)
    for ref in manifest.log:
        logs[Position(ref.batch, ref.round)].append(ref)
    rounds: dict[int, set[int]] = defaultdict(set)
    for position in logs:
        rounds[position.batch].add(position.round)
    steps = []
    for time in manifest.times:
        numbers = sorted(rounds[time.batch] | {0})
        over = time.batch <= manifest.last_batch
        for round_ in numbers:
            position = Position(time.batch, round_)
            complete = over and round_ == numbers[-1]
            steps.append(Step(position, complete, tuple(sorted(logs[position])), time))
    return tuple(sorted(steps, key=lambda step: step.position))
