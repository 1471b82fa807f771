"""The clocks of a job's inputs: what a batch adds to them. Pure, and all that it needs is in the log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from elastic.operators.graph.clocks import StageClock
from elastic.operators.graph.inputs import InputSpec
from storage.state import BatchTime, InputTime


@dataclass(frozen=True)
class Watermarks:
    """How the watermark of every input follows from its rows, and that of the job from all of them.

    The watermark of an input is its latest event time less its delay; it never goes back. While an input is idle, its
    watermark follows the least of those that are not, or if all are idle the greatest. `history` is how many batches
    some stage lags behind; so many more watermarks are kept.
    """

    inputs: tuple[InputSpec, ...]
    clocks: tuple[StageClock, ...] = ()

    @property
    def history(self) -> int:
        return max((clock.max_lag for clock in self.clocks), default=0)

    @property
    def are_plain(self) -> bool:
        """Whether the two watermarks of a `BatchTime` are all that stages need."""
        return len(self.inputs) == 1 and not self.history

    def advance(
        self,
        latest: BatchTime | None,
        batch: int,
        timestamp_ms: int,
        seen: Mapping[int, int | None],
        began_ms: int = 0,
    ) -> BatchTime:
        """Return the clock of a batch. `seen` has the latest event time of each input that has rows in it.

        No input was idle while the job stood still: what came meanwhile is still to be read. So idleness counts from
        `began_ms`, when this life of the job began, at the earliest.
        """
        before = self._before(latest, timestamp_ms)
        reached = [
            self._reach(spec, time.watermarks[0], seen.get(number))
            for number, (spec, time) in enumerate(zip(self.inputs, before, strict=True))
        ]
        active_ms = [
            timestamp_ms if number in seen else max(time.active_ms, began_ms) for number, time in enumerate(before)
        ]
        timed = [
            number for number, spec in enumerate(self.inputs) if spec.event_time is not None or len(self.inputs) == 1
        ]
        idle = {number for number in timed if self._is_idle(number, active_ms[number], timestamp_ms)}
        active = [reached[number] for number in timed if number not in idle]
        floor = _least(active) if active else max((one for one in reached if one is not None), default=None)
        for number in idle:
            reached[number] = _later(reached[number], floor)
        times = tuple(
            InputTime(active, (now, *time.watermarks[: self.history + 1]))
            for active, now, time in zip(active_ms, reached, before, strict=True)
        )
        watermark_ms = _least([before[number].watermarks[0] for number in timed])
        next_watermark_ms = _least([reached[number] for number in timed])
        return BatchTime(batch, timestamp_ms, watermark_ms, next_watermark_ms, () if self.are_plain else times)

    def next_idle_ms(self, latest: BatchTime | None, began_ms: int = 0) -> int | None:
        """Return when an input becomes idle, if that lets a watermark advance; None if none does."""
        if latest is None:
            return None
        due = [
            max(time.active_ms, began_ms) + spec.idle_after_ms
            for spec, time in zip(self.inputs, latest.inputs, strict=False)
            if spec.idle_after_ms is not None
        ]
        now = [time.watermarks[0] for time in latest.inputs]
        for at_ms in sorted(at_ms for at_ms in due if at_ms > latest.timestamp_ms):
            later = self.advance(latest, latest.batch + 1, at_ms, {}, began_ms)
            if [time.watermarks[0] for time in later.inputs] != now:
                return at_ms
        return None

    def is_draining(self, latest: BatchTime | None, next_timers: Iterable[tuple[int, int]]) -> bool:
        """Whether an empty batch lets a timer fire, of those that are due next: pairs of a stage and a time.

        A stage that lags behind gets there by one batch after the other, with or without rows.
        """
        if latest is None:
            return False
        for stage, at_ms in next_timers:
            clock = self.clocks[stage]
            now, end = clock.watermark_of_timers(latest), clock.drained(latest)
            if end is not None and at_ms <= end and (now is None or now < end):
                return True
        return False

    def _before(self, latest: BatchTime | None, timestamp_ms: int) -> Sequence[InputTime]:
        """Return the clocks after the batch before, with as much history as is needed."""
        size = self.history + 2
        if latest is None:
            return [InputTime(timestamp_ms, (None,) * size) for _ in self.inputs]
        if len(latest.inputs) == len(self.inputs):
            return [time._replace(watermarks=_pad(time.watermarks, size)) for time in latest.inputs]
        # Of a job that needed less.
        known = _pad((latest.next_watermark_ms, latest.watermark_ms), size)
        return [InputTime(latest.timestamp_ms, known) for _ in self.inputs]

    def _reach(self, spec: InputSpec, before: int | None, latest_ms: int | None) -> int | None:
        return before if latest_ms is None else _later(before, latest_ms - spec.watermark_delay_ms)

    def _is_idle(self, number: int, active_ms: int, timestamp_ms: int) -> bool:
        idle_after_ms = self.inputs[number].idle_after_ms
        return idle_after_ms is not None and timestamp_ms - active_ms >= idle_after_ms


def _pad(watermarks: tuple[int | None, ...], size: int) -> tuple[int | None, ...]:
    return (*watermarks, *[watermarks[-1]] * (size - len(watermarks)))[:size]


def _least(watermarks: Sequence[int | None]) -> int | None:
    known = [each for each in watermarks if each is not None]
    return min(known) if known and len(known) == len(watermarks) else None


def _later(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)
