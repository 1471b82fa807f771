"""Where bytes are kept: one store a module. A new store is a module here and an entry in `STORES`."""

from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, ObjectInfo, Store
from storage.stores.registry import STORES, open  # noqa: A004 - callers write storage.open

__all__ = ["DEFAULT_TIMEOUT_SECONDS", "STORES", "ObjectInfo", "Store", "open"]
