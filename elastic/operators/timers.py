"""The timers of one unit."""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from elastic.operators.keys import sort_key, to_canonical

TimerKind: TypeAlias = Literal["event", "processing"]
KINDS: tuple[TimerKind, ...] = ("event", "processing")


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that fires when its clock reaches `at_ms`: the watermark for "event", the batch's time for "processing".

    There is one timer per kind, key and name; setting it again moves it.
    """

    at_ms: int
    kind: TimerKind
    name: str = ""
    key: Any = None


class _Clock:
    """The timers of one kind. Setting, moving and deleting are O(log n), `is_due` is O(1).

    Timers with the same time share a bucket, and the heap holds the times of the buckets; the time of an emptied bucket
    stays in the heap until it is reached, or until half of the heap are such times.
    """

    def __init__(self) -> None:
        self._times: dict[tuple[Hashable, str], int] = {}
        self._buckets: dict[int, dict[tuple[Hashable, str], None]] = {}
        self._heap: list[int] = []

    @classmethod
    def of(cls, items: Iterable[tuple[int, Hashable, str]]) -> Self:
        """Return a clock with these timers, as `items` yields them. O(n)."""
        clock = cls()
        for at_ms, key, name in items:
            clock._times[key, name] = at_ms
            clock._buckets.setdefault(at_ms, {})[key, name] = None
        clock._heap = sorted(clock._buckets)
        return clock

    def __len__(self) -> int:
        return len(self._times)

    def set(self, key: Hashable, name: str, at_ms: int) -> None:
        self.delete(key, name)
        self._times[key, name] = at_ms
        if at_ms not in self._buckets:
            self._buckets[at_ms] = {}
            heapq.heappush(self._heap, at_ms)
        self._buckets[at_ms][key, name] = None

    def delete(self, key: Hashable, name: str) -> None:
        at_ms = self._times.pop((key, name), None)
        if at_ms is None:
            return
        bucket = self._buckets[at_ms]
        del bucket[key, name]
        if not bucket:
            del self._buckets[at_ms]
            if len(self._heap) > 2 * len(self._buckets) + 16:
                self._heap = sorted(self._buckets)

    def get(self, key: Hashable, name: str) -> int | None:
        return self._times.get((key, name))

    def is_due(self, now_ms: int) -> bool:
        earliest = self.next_ms()
        return earliest is not None and earliest <= now_ms

    def next_ms(self) -> int | None:
        while self._heap and self._heap[0] not in self._buckets:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    def take_due(self, now_ms: int) -> Iterator[tuple[int, Hashable, str]]:
        while self.is_due(now_ms):
            at_ms = heapq.heappop(self._heap)
            for key, name in self._buckets.pop(at_ms):
                del self._times[key, name]
                yield at_ms, key, name

    def items(self) -> Iterator[tuple[int, Hashable, str]]:
        return ((at_ms, key, name) for (key, name), at_ms in self._times.items())


class Timers:
    """All timers of a unit, of both kinds; part of its state."""

    def __init__(self, clocks: Mapping[str, _Clock] | None = None) -> None:
        self._clocks: dict[str, _Clock] = {kind: _Clock() for kind in KINDS} | dict(clocks or {})

    def __len__(self) -> int:
        return sum(map(len, self._clocks.values()))

    def items(self, kind: str) -> Iterator[tuple[int, Hashable, str]]:
        """Return time, key and name of every timer of a kind."""
        return self._clocks[kind].items()

    def set(self, timer: Timer) -> None:
        self._clocks[timer.kind].set(timer.key, timer.name, timer.at_ms)

    def delete(self, kind: str, key: Hashable, name: str) -> None:
        self._clocks[kind].delete(key, name)

    def is_due(self, now_ms: Mapping[str, int | None]) -> bool:
        return any(now is not None and self._clocks[kind].is_due(now) for kind, now in now_ms.items())

    def next_ms(self, kind: TimerKind) -> int | None:
        """Return the time of the earliest timer of a kind; None if there is none. O(1)."""
        return self._clocks[kind].next_ms()

    def take_due(self, now_ms: Mapping[str, int | None]) -> list[Timer]:
        """Remove and return the due timers, in the order of (time, key, name, kind)."""
        due = [
            Timer(at_ms, kind, name, key)  # type: ignore[arg-type]
            for kind, now in now_ms.items()
            if now is not None
            for at_ms, key, name in self._clocks[kind].take_due(now)
        ]
        return sorted(due, key=lambda timer: (timer.at_ms, sort_key(timer.key), timer.name, timer.kind))

    def part(self, mask_keys: Callable[[list[Any]], NDArray[np.bool_]]) -> Self:
        """Take the timers out whose keys the mask selects, and return them. O(timers)."""
        taken = {}
        for kind, clock in self._clocks.items():
            items = list(clock.items())
            mask = mask_keys([key for _, key, _ in items])
            taken[kind] = _Clock.of(compress(items, mask.tolist()))
            if len(taken[kind]):
                self._clocks[kind] = _Clock.of(compress(items, (~mask).tolist()))
        return type(self)(taken)

    def copy_of_unit(self) -> Self:
        """Return a copy of the timers without a key, which belong to the unit."""
        clocks = {
            kind: _Clock.of(item for item in clock.items() if item[1] is None) for kind, clock in self._clocks.items()
        }
        return type(self)(clocks)

    def keep_earlier(self, others: Self) -> None:
        """Move every timer that others have too, and earlier, to that time."""
        for kind, clock in self._clocks.items():
            for at_ms, key, name in list(clock.items()):
                known = others.get(kind, key, name)
                if known is not None and known < at_ms:
                    clock.set(key, name, known)

    def get(self, kind: str, key: Hashable, name: str) -> int | None:
        """Return the time of a timer; None if it is not set. O(1)."""
        return self._clocks[kind].get(key, name)

    def join(self, part: Self) -> None:
        """Set all timers of a part."""
        for kind, clock in self._clocks.items():
            for at_ms, key, name in part.items(kind):
                clock.set(key, name, at_ms)

    def to_columns(self) -> dict[str, Any]:
        """Return the stored form: one array of times, and lists of keys and names, by kind."""
        columns: dict[str, Any] = {}
        for kind, clock in self._clocks.items():
            items = list(clock.items())
            columns[f"{kind}.at_ms"] = np.array([at_ms for at_ms, _, _ in items], np.int64)
            columns[f"{kind}.keys"] = [key for _, key, _ in items]
            columns[f"{kind}.names"] = [name for _, _, name in items]
        return columns

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> Self:
        clocks: dict[str, _Clock] = {}
        for kind in KINDS:
            keys = map(to_canonical, columns[f"{kind}.keys"])
            rows = zip(columns[f"{kind}.at_ms"].tolist(), keys, columns[f"{kind}.names"], strict=True)
            clocks[kind] = _Clock.of(rows)
        return cls(clocks)
