"""The application's secret: it signs every object, and is never printed."""

import hashlib
import hmac
import secrets
from typing import Self

from storage.errors import InvalidStorageInput
from storage.stores.protocol import Bytes

_MIN_BYTES = 16  # 128 bits: infeasible to guess
_LABEL = b"spark-elastic: signature of stored objects"  # so that other uses of the secret have other keys


class Secret:
    """At least 16 bytes that only this application knows.

    It is hidden in `repr` and `str`, and cannot be pickled. To send it to a node, use `reveal()` here and `of` there.
    """

    __slots__ = ("_bytes", "_signing_key")

    def __init__(self, value: bytes) -> None:
        if len(value) < _MIN_BYTES:
            raise InvalidStorageInput(
                f"a secret of {len(value)} bytes is too short. Use at least {_MIN_BYTES}, or `Secret.random()`."
            )
        self._bytes = bytes(value)
        self._signing_key = hmac.digest(self._bytes, _LABEL, hashlib.sha256)

    @classmethod
    def of(cls, value: str | bytes) -> Self:
        """Return the secret of a setting; text stands for its UTF-8 bytes."""
        return cls(value.encode() if isinstance(value, str) else value)

    @classmethod
    def random(cls) -> Self:
        return cls(secrets.token_bytes(32))

    def reveal(self) -> bytes:
        """Return the bytes. Keep them out of logs."""
        return self._bytes

    def sign(self, data: Bytes) -> bytes:
        """Return the HMAC-SHA256 of the data, under a key derived from the secret."""
        return hmac.digest(self._signing_key, data, hashlib.sha256)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._bytes, other._bytes)

    def __hash__(self) -> int:
        return hash(self._signing_key)

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> str:
        raise TypeError("a Secret cannot be pickled. Send `secret.reveal()`, and use `Secret.of` there.")
