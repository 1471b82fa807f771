"""Where a projection lays down what it has: arrays by name, in memory or in the store.

In the store they are signed, are read by workers elsewhere, and let a projection that was killed go on.
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


class Laid(NamedTuple):
    """What was laid down under one name."""

    arrays: Arrays
    facts: Mapping[str, Any]


class Shelf(Protocol):
    """Names are paths; what lies under one is replaced by what is laid there next. Safe to use from many threads."""

    def put(self, name: str, arrays: Arrays, facts: Mapping[str, JSON] | None = None) -> None: ...

    def get(self, name: str) -> Laid | None:
        """None if nothing lies there."""
        ...

    def names(self, folder: str = "") -> set[str]:
        """All names that begin so."""
        ...

    def clear(self, folder: str = "") -> None:
        """Take away all of them."""
        ...


class MemoryShelf:
    """In this process."""

    def __init__(self) -> None:
        self._laid: dict[str, Laid] = {}

    def put(self, name: str, arrays: Arrays, facts: Mapping[str, JSON] | None = None) -> None:
        self._laid[name] = Laid(dict(arrays), dict(facts or {}))

    def get(self, name: str) -> Laid | None:
        return self._laid.get(name)

    def names(self, folder: str = "") -> set[str]:
        return {name for name in list(self._laid) if name.startswith(folder)}

    def clear(self, folder: str = "") -> None:
        for name in self.names(folder):
            del self._laid[name]


class StoreShelf:
    """In a folder of a store. It can be pickled: a worker opens the store by itself."""

    def __init__(self, url: str, folder: str, secret: Secret, settings: Mapping[str, Any] | None = None) -> None:
        self._url = url
        self._folder = folder.strip("/") + "/"
        self._secret = secret
        self._settings = dict(settings or {})
        self._store: Store | None = None

    def put(self, name: str, arrays: Arrays, facts: Mapping[str, JSON] | None = None) -> None:
        key = self._key(name)
        # Ranks and floats hardly get smaller, and packing them would take longer than writing them.
        self._opened().put(key, pack(arrays, key=key, secret=self._secret, compression="none", meta=facts))

    def get(self, name: str) -> Laid | None:
        key = self._key(name)
        try:
            stored = self._opened().get(key)
        except ObjectMissing:
            return None
        found = unpack(stored.data, key=key, secret=self._secret)
        return Laid(found.parts, found.meta)

    def names(self, folder: str = "") -> set[str]:
        found = self._opened().list(self._folder + folder)
        return {entry.key.removeprefix(self._folder).removesuffix(_EXTENSION) for entry in found}

    def clear(self, folder: str = "") -> None:
        self._opened().delete([self._key(name) for name in self.names(folder)])

    def _key(self, name: str) -> str:
        return f"{self._folder}{name}{_EXTENSION}"

    def _opened(self) -> Store:
        if self._store is None:
            self._store = storage.open(self._url, **self._settings)
        return self._store

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_store": None, "_secret": self._secret.reveal()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_secret": Secret.of(state["_secret"])})
