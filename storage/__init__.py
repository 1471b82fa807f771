"""Durable operator state: stores, codec, the operator state manager and the job journal.

Independent of planning and of Spark. Start with `storage.open("file:///some/folder")`.
"""

from storage.codec import Secret
from storage.stores import STORES, ObjectInfo, Store, open  # noqa: A004 - `storage.open` reads as it should

__all__ = ["STORES", "ObjectInfo", "Secret", "Store", "open"]
