"""Retries while a store is unavailable."""

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from elastic import threads
from elastic.errors import StoreUnreachable
from storage.errors import StoreUnavailable

Result = TypeVar("Result")
_log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0  # bounds how late a recovered store is noticed


def retry_while_unavailable(
    call: Callable[[], Result], retry_seconds: float, give_up: threading.Event | None = None
) -> Result:
    """Return what `call` returns, retrying while the store is unavailable, for at most `retry_seconds`.

    `call` must be safe to repeat. Raises `StoreUnreachable` after `retry_seconds`, and the store's own error once
    `give_up` is set.
    """
    started = threads.monotonic()
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            result = call()
        except StoreUnavailable as error:
            waited = threads.monotonic() - started
            if waited > retry_seconds:
                raise StoreUnreachable(waited) from error
            if pause == _FIRST_PAUSE_SECONDS:
                _log.warning("the store is unavailable, retrying for up to %.0f s: %s", retry_seconds, error)
            if (give_up or threads.Event()).wait(pause):
                raise
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            if pause > _FIRST_PAUSE_SECONDS:
                _log.warning("the store is available again after %.1f s", threads.monotonic() - started)
            return result
