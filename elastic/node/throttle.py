"""Copies for which no result waits: at low priority, and not more bytes per second than the stream can spare."""

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


def lower_priority() -> None:
    """Lower the priority of the calling thread; Linux has one for each thread.

    Relative to the current one and never upwards: only a privileged process may lower its niceness. A sandbox may
    forbid even this, and then such work runs at the priority of the node: slower batches, but no failure.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    try:
        current = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(current + _NICENESS, _HIGHEST_NICENESS))
    except OSError as error:
        _log.warning("background work runs at the priority of the node, because it cannot be lowered: %s", error)
