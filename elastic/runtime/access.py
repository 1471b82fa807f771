"""How a process on another machine gets at the job's store and secret: carried to it inside the Spark task."""

from dataclasses import dataclass, field
from typing import Any

import storage
from elastic.runtime.patience import patiently
from storage import Secret, Store


@dataclass(frozen=True)
class StoreAccess:
    """A store and the secret that signs what is in it. Shows neither credentials nor the secret."""

    url: str
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    secret_bytes: bytes = field(default=b"", repr=False)

    @property
    def secret(self) -> Secret:
        return Secret.of(self.secret_bytes)

    def open(self) -> Store:
        return storage.open(self.url, **self.settings)

    def open_patiently(self, patience_seconds: float) -> Store:
        """For processes that start while the store is away: what it is like was tried out when the job began."""
        return patiently(self.open, patience_seconds)
