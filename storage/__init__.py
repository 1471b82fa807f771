"""How operator state becomes bytes and comes back: stores, codec and the operator state manager.

Knows nothing of planning and nothing of Spark. Start with `storage.open("file:///some/folder")`.
"""

from storage.codec import Secret
from storage.stores import STORES, Entry, Store, Stored, open  # noqa: A004 - `storage.open` reads as it should

__all__ = ["STORES", "Entry", "Secret", "Store", "Stored", "open"]
