"""How far event time has come in a stage: from the watermarks of the inputs that reach it, and the way they take.

A watermark is data: the log has the watermark of every input after every batch. What a stage sees of it follows from
the graph alone:

- A stage that reads an input sees its watermark: for the rows of a batch that from before the batch, for the timers
  after them that from after it.
- A stage without timers emits rows in the batch in which it gets them, so it passes on what it sees.
- A stage with timers emits what its timers tell at the end of a batch; so what it has emitted up to a batch is
  complete until the time that its timers had in the batch before.
- Rows that a stage emits come to its followers after the timers of the same batch. So for a follower, rows and timers
  of a batch have the same watermark: none of the rows to come is at or before it.
- Rows may lie behind the watermark of the stage that emits them by its declared delay, such as the size of windows.
- Several ways into a stage give the least of their watermarks.

Each stage with timers behind another one is therefore one batch further behind the inputs, and on a quiet stream so
many empty batches let everything out that is complete.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from storage.state import BatchTime

_Ways = dict[tuple[int, int], int]  # (input, lag) -> delay


class Way(NamedTuple):
    """One way from an input to a stage, with its lag in batches and its delay in milliseconds of event time."""

    number: int  # of the input
    lag: int  # -1: the watermark after the batch
    delay_ms: int


@dataclass(frozen=True)
class StageClock:
    """The event time of one stage in a batch: the least over all ways, each for rows and for timers.

    Without ways there is no event time. It never goes back, since watermarks do not.
    """

    rows: tuple[Way, ...] = (Way(0, 0, 0),)
    timers: tuple[Way, ...] = (Way(0, -1, 0),)

    def watermark_of_rows(self, time: BatchTime) -> int | None:
        """Return the watermark for the rows of a batch."""
        return _least(time, self.rows)

    def watermark_of_timers(self, time: BatchTime) -> int | None:
        """Return the watermark for the timers of a batch."""
        return _least(time, self.timers)

    def drained(self, time: BatchTime) -> int | None:
        """Return the watermark that the timers reach when enough empty batches follow."""
        return _least(time, [way._replace(lag=-1) for way in self.timers])

    @property
    def max_lag(self) -> int:
        return max((way.lag for way in (*self.rows, *self.timers)), default=0)


class ClockedStage(NamedTuple):
    """The properties of a stage that determine the clocks of later stages."""

    inputs: tuple[int, ...]  # numbers of the inputs that it reads and that have a watermark
    stages: tuple[int, ...]  # numbers of the stages that it reads
    has_timers: bool
    delay_ms: int


def derive_clocks(stages: Sequence[ClockedStage]) -> tuple[StageClock, ...]:
    """Return the clock of each stage; a stage comes after those that it reads. O(edges * inputs * depth)."""
    clocks: list[StageClock] = []
    emitted: list[_Ways] = []  # by stage: the ways of what it emits
    for stage in stages:
        behind = _merge(emitted[number] for number in stage.stages)
        rows = _merge([{(number, 0): 0 for number in stage.inputs}, behind])
        timers = _merge([{(number, -1): 0 for number in stage.inputs}, behind])
        clocks.append(StageClock(_to_ways(rows), _to_ways(timers)))
        shift, ways = (1, timers) if stage.has_timers else (0, rows)
        emitted.append({(number, lag + shift): delay + stage.delay_ms for (number, lag), delay in ways.items()})
    return tuple(clocks)


def _merge(parts: Iterable[_Ways]) -> _Ways:
    merged: _Ways = {}
    for part in parts:
        for way, delay in part.items():
            merged[way] = max(merged.get(way, 0), delay)
    return merged


def _to_ways(ways: _Ways) -> tuple[Way, ...]:
    """Return the ways that matter: one that is neither older nor later than another never is the least."""
    found = [Way(number, lag, delay) for (number, lag), delay in sorted(ways.items())]
    return tuple(
        way
        for way in found
        if not any(
            other != way and other.number == way.number and other.lag >= way.lag and other.delay_ms >= way.delay_ms
            for other in found
        )
    )


def _least(time: BatchTime, ways: Iterable[Way]) -> int | None:
    least: int | None = None
    for number, lag, delay_ms in ways:
        watermark = time.watermark(number, lag)
        if watermark is None:
            return None
        least = watermark - delay_ms if least is None else min(least, watermark - delay_ms)
    return least
