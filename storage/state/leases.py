"""Leases: they protect saved state from the collector until a manifest names it, without clocks.

A lease is an object. It exists before anything is saved under it, and is deleted after the commit of the manifest that
names what was saved, or after the work was given up. The folder of every saved state has its lease's id as its name.

Only a driver that has committed a manifest opens leases, and the id holds the number of that manifest and the driver's
id. So a listing alone shows which leases belong to drivers that were fenced since, and how far back the readers under
the open leases may look: a lease pins the manifest that was the latest when it was opened, and all after it.
"""

import json
import re
import threading
from collections.abc import Iterable
from typing import NamedTuple, Protocol, Self

from storage.errors import InvalidStorageInput, LeaseClosed, StoreUnavailable
from storage.state.paths import Paths
from storage.stores.protocol import Store

_ID = re.compile(r"(?P<number>\d{12,})-\d{9,}-(?P<driver>[0-9a-f]+)")


class Owner(Protocol):
    """The driver that commits the manifest, as leases see it."""

    @property
    def driver_id(self) -> str: ...

    def owned_number(self) -> int:
        """Return the number of the latest manifest; refused for a driver that does not own the operator."""
        ...

    def resolve_in_doubt(self) -> None:
        """Return when no commit is in doubt: none that failed can still arrive later."""
        ...


class LeaseId(NamedTuple):
    """The parts of a lease's id: the latest manifest when it was opened, and the driver that opened it."""

    number: int
    driver_id: str

    @classmethod
    def parse(cls, text: str) -> "LeaseId":
        found = _ID.fullmatch(text)
        if found is None:
            raise InvalidStorageInput(f"{text!r} is not the id of a lease. Use the id of a lease that was opened.")
        return cls(int(found["number"]), found["driver"])


class Lease:
    """Protects what is saved under it until it is closed.

    Close it after the commit that names the saved states, or when the work was given up. As a context manager it closes
    itself at the end of the block, also after an error.
    """

    def __init__(self, leases: "Leases", lease_id: str) -> None:
        self._leases = leases
        self.id = lease_id

    @property
    def is_open(self) -> bool:
        return self._leases.holds(self.id)

    def close(self) -> None:
        """End the protection; idempotent."""
        self._leases.close([self.id])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lease({self.id!r})"


class Leases:
    """The open leases of one operator, and those that this driver opened. Safe to use from many threads."""

    def __init__(self, store: Store, operator: str, owner: Owner) -> None:
        self._store = store
        self._paths = Paths(operator)
        self._owner = owner
        self._lock = threading.Lock()
        self._opened = 0
        self._held: set[str] = set()
        self._in_doubt: set[str] = set()  # unused, but they may exist, and would pin manifests for ever

    def open(self, kind: str) -> Lease:
        """Open a new lease; `kind` ("snapshot", "migration") is for people who look into the store."""
        number = self._owner.owned_number()
        with self._lock:
            self._opened += 1
            lease_id = f"{number:012d}-{self._opened:09d}-{self._owner.driver_id}"
        document = {"lease": lease_id, "kind": kind, "manifest": number, "controller": self._owner.driver_id}
        try:
            self._store.put(self._paths.lease(lease_id), json.dumps(document).encode())
        except StoreUnavailable:
            with self._lock:
                self._in_doubt.add(lease_id)
            raise
        with self._lock:
            self._held.add(lease_id)
        return Lease(self, lease_id)

    def list_open(self) -> list[str]:
        """Return the ids of all open leases of all drivers, oldest first."""
        return [self._paths.lease_of_file(found.key) for found in self._store.list(self._paths.leases)]

    def list_opened_before(self, number: int) -> list[str]:
        """Return the open leases of drivers that the one which took over with manifest `number` has fenced.

        Not all leases of other drivers: if that one was fenced itself since, some belong to its successor.
        """
        return [lease for lease in self.list_open() if LeaseId.parse(lease).number < number]

    def holds(self, lease_id: str) -> bool:
        """Whether this driver opened the lease and has not closed it."""
        with self._lock:
            return lease_id in self._held

    def close(self, lease_ids: Iterable[str]) -> None:
        """Close leases: what was saved under them and is in no manifest becomes garbage.

        A commit in doubt is resolved before: it could name states of these leases, and arrive after they are deleted.
        """
        with self._lock:
            # In doubt until they are deleted: if the store is unavailable now, the next call deletes them too.
            self._in_doubt.update(lease_ids)
            unused = set(self._in_doubt)
            self._held -= unused
        self._owner.resolve_in_doubt()
        self._store.delete(map(self._paths.lease, sorted(unused)))
        with self._lock:
            self._in_doubt -= unused


def as_lease_id(lease: Lease | str) -> str:
    """Return the id to save under; `LeaseClosed` if the driver has closed the lease. A node knows only the id."""
    if isinstance(lease, str):
        LeaseId.parse(lease)
        return lease
    if not lease.is_open:
        raise LeaseClosed(lease.id)
    return lease.id
