"""Waiting for a store that is away: nothing is dropped, work goes on when it is back."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from elastic.errors import StoreAway
from storage.errors import StoreUnavailable

Result = TypeVar("Result")
_log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0  # how long after its return a store is noticed, at most


def patiently(call: Callable[[], Result], patience_seconds: float, give_up: threading.Event | None = None) -> Result:
    """What `call` returns, tried again while the store is away, for at most `patience_seconds`.

    `call` must be safe to repeat. Setting `give_up` ends the waiting early, with the store's own error.
    """
    started = time.monotonic()
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            result = call()
        except StoreUnavailable as error:
            waited = time.monotonic() - started
            if waited > patience_seconds:
                raise StoreAway(waited) from error
            if pause == _FIRST_PAUSE_SECONDS:
                _log.warning("the store is away, waiting for it: %s", error)
            if (give_up or threading.Event()).wait(pause):
                raise
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            if pause > _FIRST_PAUSE_SECONDS:
                _log.warning("the store is back after %.1f s", time.monotonic() - started)
            return result
