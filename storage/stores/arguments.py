"""Arguments that every store checks alike, and the deadline of a call; keys have a module of their own."""

import math
from collections.abc import Iterable
from errno import ETIMEDOUT
from time import monotonic

from storage.errors import InvalidStorageInput
from storage.stores.keys import check_key


def check_keys(keys: Iterable[str]) -> list[str]:
    """Return all keys, checked before the first is used, so that a bad one leaves the others alone."""
    if isinstance(keys, str):
        raise InvalidStorageInput(f"expected a list of keys, got the single key {keys!r}. Put it into a list.")
    return [check_key(key) for key in keys]


def check_range(start: int, stop: int) -> None:
    """Refuse a range unless 0 <= start <= stop."""
    if not 0 <= start <= stop:
        raise InvalidStorageInput(f"bytes {start} to {stop} are not a range. Give 0 <= start <= stop.")


def check_timeout(seconds: float | None) -> None:
    """Refuse a timeout that cannot bound a wait; None stands for the store's default."""
    if seconds is not None and not 0 < seconds < math.inf:
        raise InvalidStorageInput(f"a timeout of {seconds!r} seconds cannot be kept. Give a finite number above 0.")


class Deadline:
    """The moment at which a call must have ended."""

    def __init__(self, seconds: float) -> None:
        check_timeout(seconds)
        self._seconds = seconds
        self._end = monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        return self._end - monotonic()

    def check(self) -> None:
        """Raise TimeoutError once the deadline has passed."""
        if self.seconds_left <= 0:
            raise TimeoutError(ETIMEDOUT, f"not done within {self._seconds:g} s")
