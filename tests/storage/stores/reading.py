"""An object as plain values, for comparisons."""

from storage.stores import Store


def bytes_at(store: Store, key: str) -> bytes:
    return bytes(store.get(key).data)


def stored_at(store: Store, key: str) -> tuple[bytes, str]:
    data, version = store.get(key)
    return bytes(data), version
