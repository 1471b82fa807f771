"""Where bytes are kept. One store a module; adding one is a module here and an entry in `STORES`."""

from storage.stores.opening import STORES, open  # noqa: A004 - callers write storage.open
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, Entry, Store, Stored

__all__ = ["DEFAULT_TIMEOUT_SECONDS", "STORES", "Entry", "Store", "Stored", "open"]
