"""From a URL to the store in that folder."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from storage.errors import InvalidStorageInput
from storage.stores.file.store import FileStore
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS, Store


def open_file(url: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS, shared: bool = False) -> Store:
    """The store in a folder, which is made if it is missing; what dead writers left there is removed.

    The store is private to its user unless it is `shared`: then the umask decides who can read it.
    """
    return FileStore(_folder(url), timeout_seconds, shared=shared)


def _folder(url: str) -> Path:
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/"):
        raise InvalidStorageInput("a file URL names an absolute path. Write file:///folder, with three slashes.")
    if parts.query or parts.fragment or "\0" in path:
        raise InvalidStorageInput("a file URL has a path and nothing else. Write %3F for ? and %23 for #, and no NUL.")
    if not path.strip("/"):
        raise InvalidStorageInput("the root of all folders is no folder for a store. Write file:///folder.")
    return Path(path)
