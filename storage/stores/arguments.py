"""Arguments that every store checks alike; keys have a module of their own."""

import math
from collections.abc import Iterable

from storage.errors import InvalidStorageInput
from storage.stores.keys import checked_key


def checked_keys(keys: Iterable[str]) -> list[str]:
    """All keys, checked before the first is touched, so that a bad one leaves the others alone."""
    if isinstance(keys, str):
        raise InvalidStorageInput(f"{keys!r} is one key. Write a list of keys.")
    return [checked_key(key) for key in keys]


def checked_range(start: int, stop: int) -> None:
    """Refused unless 0 <= start <= stop."""
    if not 0 <= start <= stop:
        raise InvalidStorageInput(f"bytes {start} to {stop} are no range. Give 0 <= start <= stop.")


def checked_timeout(seconds: float | None) -> None:
    """Refused unless it can bound a wait; None stands for the store's default."""
    if seconds is not None and not 0 < seconds < math.inf:
        raise InvalidStorageInput(f"a timeout of {seconds!r} seconds is none. Give a finite number above 0.")
