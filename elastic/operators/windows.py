"""Windows of time, by the names and with the meaning of Spark's: `window` and `session_window`.

A window begins at its start, inclusive, and ends at its end, exclusive. It is complete when the watermark has reached
its end: no row of it can come that is not late.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np

from elastic.durations import parse_duration_ms
from elastic.errors import InvalidSetting
from elastic.operators.kernels import Words

_US_PER_MS = 1_000


@dataclass(frozen=True)
class Window:
    """Windows of one size, one beginning every `slide`, at `start` after 1970; in microseconds.

    The longest stretches of time that lie in the same windows are *panes*. A row belongs to one pane, a pane to
    `size / slide` windows at most; so state is kept by pane, and a row costs the same however many windows it is in.
    """

    size: int
    slide: int
    start: int = 0

    def __repr__(self) -> str:
        slide = "" if self.slide == self.size else f", {_format_duration(self.slide)!r}"
        start = f", start={_format_duration(self.start)!r}" if self.start else ""
        return f"window({_format_duration(self.size)!r}{slide}{start})"

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return gcd(self.size, self.slide)

    @property
    def windows_per_pane(self) -> int:
        return -(-self.size // self.slide)

    @property
    def panes_per_window(self) -> int:
        return self.size // self.pane

    def panes(self, times: Words) -> Words:
        """Return the beginning of the pane of each time."""
        begins: Words = times - (times - self.start) % self.pane
        return begins

    def first_ends(self, panes: Words, after: int) -> Words:
        """Return the end of the first window of each pane that ends later than `after`; or of a later window."""
        # Ends are at start + size + k slide, and a pane lies in no window that ends with or before its beginning.
        origin = self.start + self.size
        later: Words = np.maximum(panes, after)
        return later + self.slide - (later - origin) % self.slide

    def last_ends(self, panes: Words) -> Words:
        """Return the end of the last window of each pane, after which the pane is not needed."""
        return panes - (panes - self.start) % self.slide + self.size

    def assign(self, times: Words) -> tuple[Words, Words]:
        """Return pairs of a time, by its position, and the end of a window that it is in; windows in order."""
        last = self.last_ends(times)
        if self.windows_per_pane == 1:
            return np.arange(len(times)), last
        ends = last[:, None] - np.arange(self.windows_per_pane)[::-1] * self.slide
        is_inside = ends > times[:, None]
        return np.nonzero(is_inside)[0], ends[is_inside]


@dataclass(frozen=True)
class SessionWindow:
    """Windows that last as long as rows of a key come, and a `gap` longer; in microseconds."""

    gap: int

    def __repr__(self) -> str:
        return f"session_window({_format_duration(self.gap)!r})"


def window(duration: str, slide: str | None = None, start: str | None = None) -> Window:
    """Return tumbling windows of a duration, such as "10 minutes", or with a shorter `slide` windows that overlap.

    Windows begin at multiples of the slide since 1970 in UTC; `start` shifts them, as "15 minutes" does hourly windows
    to a quarter past.
    """
    size = parse_duration(duration, "window duration")
    step = size if slide is None else parse_duration(slide, "slide")
    if step > size:
        raise InvalidSetting("slide", slide, f"windows of {duration} would leave gaps; it must not be longer")
    return Window(size, step, 0 if start is None else parse_duration(start, "start", can_be_zero=True))


def session_window(gap: str) -> SessionWindow:
    """Return session windows: rows of a key at most `gap` apart, such as "5 minutes", are in the same session."""
    return SessionWindow(parse_duration(gap, "gap"))


def _format_duration(us: int) -> str:
    """Return a duration in the largest unit that divides it."""
    for unit, size in (("hours", 3_600_000_000), ("minutes", 60_000_000), ("seconds", 1_000_000)):
        if us % size == 0:
            return f"{us // size} {unit}"
    return f"{us / _US_PER_MS:g} ms"


def parse_duration(text: str, name: str, *, can_be_zero: bool = False) -> int:
    """Return a duration in microseconds; raises `InvalidSetting`."""
    if not isinstance(text, str):
        raise InvalidSetting(name, text, "expected a duration such as '10 minutes'")
    duration = parse_duration_ms(text, name) * _US_PER_MS
    if duration < 1 and not can_be_zero:
        raise InvalidSetting(name, text, "it must be at least a millisecond")
    return duration
