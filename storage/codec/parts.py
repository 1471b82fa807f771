"""Parts of an object in a store, fetched one by one."""

from collections.abc import Iterator, Mapping
from typing import Any

from storage.codec.envelope import unpack_part
from storage.codec.header import HEADER_GUESS_BYTES, Header, HeaderTooShort, read_header
from storage.codec.secret import Secret
from storage.stores.protocol import Store


def fetch_header(store: Store, key: str, secret: Secret) -> tuple[memoryview, Header]:
    """Return the bytes fetched from the beginning of an object, and the verified header in them."""
    prefix = store.get_range(key, 0, HEADER_GUESS_BYTES)
    try:
        return prefix, read_header(prefix, key=key, secret=secret)
    except HeaderTooShort as short:
        if len(prefix) < HEADER_GUESS_BYTES:
            raise  # there are no more bytes
        prefix = store.get_range(key, 0, short.needed)
        return prefix, read_header(prefix, key=key, secret=secret)


class StoredParts(Mapping[str, Any]):
    """The parts of one object, each fetched and verified when it is first used, and kept from then on."""

    def __init__(self, store: Store, key: str, secret: Secret) -> None:
        self._store = store
        self._key = key
        _, self._header = fetch_header(store, key, secret)
        self._values: dict[str, Any] = {}

    @property
    def meta(self) -> Mapping[str, Any]:
        return self._header.meta

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            part = self._header.parts[name]
            stored = self._store.get_range(self._key, part.offset, part.stop)
            self._values[name] = unpack_part(self._header, name, stored)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._header.parts)

    def __len__(self) -> int:
        return len(self._header.parts)
