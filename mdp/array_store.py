"""Arrays by name, in memory or in an object store: where a projection keeps intermediate results.

In an object store they are signed, workers on other machines read them, and a killed projection resumes from them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

import storage
from storage import Secret, Store
from storage.codec import JSON, pack, unpack
from storage.errors import ObjectMissing

Arrays = Mapping[str, np.ndarray[Any, Any]]

_EXTENSION = ".arrays"


class ArrayEntry(NamedTuple):
    """The arrays and the metadata under one name."""

    arrays: Arrays
    facts: Mapping[str, Any]


class ArrayStore(Protocol):
    """Names are paths; `put` replaces what is stored under a name. Safe to use from many threads."""

    def put(self, name: str, arrays: Arrays, facts: Mapping[str, JSON] | None = None) -> None: ...

    def get(self, name: str) -> ArrayEntry | None:
        """The entry of that name, or None."""
        ...

    def names(self, folder: str = "") -> set[str]:
        """All names that start with `folder`."""
        ...

    def clear(self, folder: str = "") -> None:
        """Delete everything whose name starts with `folder`."""
        ...


class MemoryArrayStore:
    """Arrays in the memory of this process."""

    def __init__(self) -> None:
        self._entries: dict[str, ArrayEntry] = {}

    def put(self, name: str, arrays: Arrays, facts: Mapping[str, JSON] | None = None) -> None:
        self._entries[name] = ArrayEntry(dict(arrays), dict(facts or {}))

    def get(self, name: str) -> ArrayEntry | None:
        return self._entries.get(name)

    def names(self, folder: str = "") -> set[str]:
        return {name for name in list(self._entries) if name.startswith(folder)}

    def clear(self, folder: str = "") -> None:
        for name in self.names(folder):
            del self._entries[name]


class ObjectArrayStore:
    """Arrays in a folder of an object store. It can be pickled; a worker opens the store itself."""

    def __init__(self, url: str, folder: str, secret: Secret, settings: Mapping[str, Any] | None = None) -> None:
        self._url = url
        self._folder = folder.strip("/") + "/"
        self._secret = secret
        self._settings = dict(settings or {})
        self._store: Store | None = None

    def put(self, name: str, arrays: Arrays, facts: Mapping[str, JSON] | None = None) -> None:
        key = self._key(name)
        # Ranks and floats hardly compress, and compressing them would take longer than writing them.
        self._open().put(key, pack(arrays, key=key, secret=self._secret, compression="none", meta=facts))

    def get(self, name: str) -> ArrayEntry | None:
        key = self._key(name)
        try:
            stored = self._open().get(key)
        except ObjectMissing:
            return None
        found = unpack(stored, key=key, secret=self._secret)
        return ArrayEntry(found.parts, found.meta)

    def names(self, folder: str = "") -> set[str]:
        found = self._open().list(self._folder + folder)
        return {entry.key.removeprefix(self._folder).removesuffix(_EXTENSION) for entry in found}

    def clear(self, folder: str = "") -> None:
        self._open().delete([self._key(name) for name in self.names(folder)])

    def _key(self, name: str) -> str:
        return f"{self._folder}{name}{_EXTENSION}"

    def _open(self) -> Store:
        if self._store is None:
            self._store = storage.open(self._url, **self._settings)
        return self._store

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_store": None, "_secret": self._secret.reveal()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_secret": Secret.of(state["_secret"])})
