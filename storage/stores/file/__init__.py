"""Objects as files in a folder, durable when a write returns, shared by any number of processes."""

from storage.stores.file.store import FileStore, open_file

__all__ = ["FileStore", "open_file"]
