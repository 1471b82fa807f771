"""Access to the job's store and secret from processes on other machines, sent to them inside a Spark task."""

from dataclasses import dataclass, field
from typing import Any

import storage
from elastic.retry import retry_while_unavailable
from storage import Secret, Store


@dataclass(frozen=True)
class StoreAccess:
    """A store and the secret that signs its objects. Its `repr` shows neither credentials nor the secret."""

    url: str
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    secret_bytes: bytes = field(default=b"", repr=False)

    @property
    def secret(self) -> Secret:
        return Secret.of(self.secret_bytes)

    def open(self) -> Store:
        return storage.open(self.url, **self.settings)

    def open_when_available(self, retry_seconds: float) -> Store:
        """Open the store, retrying while it is unavailable: the driver opened it before, so its URL is right."""
        return retry_while_unavailable(self.open, retry_seconds)
