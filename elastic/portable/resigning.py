"""`elastic.resign`: another secret for a stopped job."""

from collections.abc import Mapping
from typing import Any

import storage
from storage import Secret
from storage.state import Resigned
from storage.state import resign as resign_operator


def resign(
    name: str,
    *,
    store: str,
    old_secret: str | bytes,
    new_secret: str | bytes,
    fence: bool = False,
    store_settings: Mapping[str, Any] | None = None,
) -> Resigned:
    """Sign everything that a stopped job needs with a new secret, atomically; safe to repeat after a failure.

    `fence` takes over a job whose driver was killed, or ends one that runs. See `storage.state.resigning`.
    """
    opened = storage.open(store, **dict(store_settings or {}))
    try:
        return resign_operator(opened, name, Secret.of(old_secret), Secret.of(new_secret), fence=fence)
    finally:
        opened.close()
