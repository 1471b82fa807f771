"""Work for which no result waits: at low priority, and not more of it per second than the stream can spare."""

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING

from elastic import threads

if TYPE_CHECKING:
    from threading import Event

_NICENESS = 10  # added for threads without urgent work: they get a tenth of a processor that the stream wants too
_HIGHEST_NICENESS = 19  # the kernel knows no higher one
_PAUSE_SHARE = 3.0  # pause of a standby that catches up, in times of its last step: a quarter of a processor
_SHORTEST_PAUSE_SECONDS = 0.03  # other nodes of the machine catch up at the same time, and reading rows costs time too
_log = logging.getLogger(__name__)


class CopyThrottle:
    """Lets copies through at `bytes_per_second` on average; 0 does not limit them. Safe to use from many threads.

    A copy waits until the bytes of all copies before it have had their time, so a large one delays the next, not
    itself, and after an idle time nothing has been saved up.
    """

    def __init__(self, bytes_per_second: float, closing: "Event") -> None:
        self._bytes_per_second = bytes_per_second
        self._closing = closing
        self._free_at = 0.0
        self._lock = threads.Lock()

    def wait_for(self, size: int) -> None:
        """Return when `size` more bytes may be copied, or the node closes."""
        if not self._bytes_per_second:
            return
        with self._lock:
            now = threads.monotonic()
            begin = max(now, self._free_at)
            self._free_at = begin + size / self._bytes_per_second
        if begin > now:
            self._closing.wait(begin - now)


class CatchUpPace:
    """Spreads the steps that standbys are behind over time, so that the stream keeps the processors.

    Only for `throttled_seconds` since they fell behind: where the stream itself takes all the time that it can get,
    they would never catch up. One thread at a time calls it.
    """

    def __init__(self, throttled_seconds: float) -> None:
        self._throttled_seconds = throttled_seconds
        self._behind_since: float | None = None
        self._resume_at = 0.0

    @property
    def pause_seconds(self) -> float:
        """Seconds that the next step of a standby has to wait."""
        return max(0.0, self._resume_at - threads.monotonic())

    @property
    def is_overdue(self) -> bool:
        """Whether standbys have been far behind for so long that they catch up as fast as they can."""
        since = self._behind_since
        return since is not None and threads.monotonic() - since >= self._throttled_seconds

    def note_step(self, seconds: float, *, is_behind: bool, pauses: bool = True) -> None:
        """Pause after a step that took so long, if standbys still are far behind, unless something else slows them."""
        now = threads.monotonic()
        if not is_behind:
            self._behind_since = None
            return
        if self._behind_since is None:
            self._behind_since = now
        if pauses and not self.is_overdue:
            self._resume_at = now + max(_PAUSE_SHARE * seconds, _SHORTEST_PAUSE_SECONDS)


def lower_priority() -> bool:
    """Lower the priority of the calling thread, and return whether that was possible; Linux has one for each thread.

    Relative to the current one and never upwards: only a privileged process may lower its niceness. A sandbox may
    forbid even this, and then such work runs at the priority of the node: slower batches, but no failure.
    """
    if sys.platform != "linux":
        return False
    thread = threading.get_native_id()
    try:
        current = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(current + _NICENESS, _HIGHEST_NICENESS))
    except OSError as error:
        _log.warning("background work runs at the priority of the node, because it cannot be lowered: %s", error)
        return False
    return True
