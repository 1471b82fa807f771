"""The identity, store and settings of a running job, which all its parts share."""

from dataclasses import dataclass, field
from functools import cached_property

from elastic.results import Description
from elastic.settings import Settings
from elastic.store_access import StoreAccess
from elastic.wire import Network
from storage import Secret, Store


@dataclass(frozen=True)
class JobContext:
    """A job in one life of its driver: its name, pipeline and settings, its opened store, its network.

    `host` is the address that the driver listens on, `node_host` the one for nodes (None: each finds its own).
    """

    name: str
    pipeline: Description
    settings: Settings  # without the secret
    access: StoreAccess
    store: Store
    network: Network
    host: str
    node_host: str | None
    token: str = field(repr=False)

    @cached_property
    def secret(self) -> Secret:
        return self.access.secret
