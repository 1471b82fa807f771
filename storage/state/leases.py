"""Leases: what protects saved state from the collector until a manifest names it, without clocks.

A lease is an object. It is there before anything is saved under it, and it goes after the manifest that names what was
saved was committed, or after the work was given up. The folder of every saved state bears its lease's id.

Only a controller that has committed a manifest opens leases, and the id holds the number of that manifest and the
controller's id. So a listing alone tells which leases belong to controllers that were fenced off since, and how far
back the readers under the open leases may look: a lease pins the manifest that was the latest when it was opened,
and all after it.
"""

import json
import re
import threading
from collections.abc import Iterable
from typing import NamedTuple, Protocol, Self

from storage.errors import InvalidStorageInput, LeaseClosed, StoreUnavailable
from storage.state.paths import Paths
from storage.stores.protocol import Store

_ID = re.compile(r"(?P<number>\d{12,})-\d{9,}-(?P<controller>[0-9a-f]+)")


class Owner(Protocol):
    """Who commits the manifest; as much of it as a lease must know."""

    @property
    def controller(self) -> str: ...

    def owned_number(self) -> int:
        """The number of the latest manifest; refused for a controller that does not own the operator."""
        ...

    def settle(self) -> None:
        """Return when no commit is in doubt: none that failed can still arrive later."""
        ...


class LeaseId(NamedTuple):
    """What an id says: the latest manifest when it was opened, and who opened it."""

    number: int
    controller: str

    @classmethod
    def parse(cls, text: str) -> "LeaseId":
        found = _ID.fullmatch(text)
        if found is None:
            raise InvalidStorageInput(f"{text!r} is not the id of a lease. Use the id of a lease that was opened.")
        return cls(int(found["number"]), found["controller"])


class Lease:
    """Open work: what is saved under it stays until it is closed.

    Close it after the commit that names the saved states, or when the work was given up. As a context manager it does
    so at the end of the block, whatever the end was.
    """

    def __init__(self, leases: "Leases", lease_id: str) -> None:
        self._leases = leases
        self.id = lease_id

    @property
    def is_open(self) -> bool:
        return self._leases.holds(self.id)

    def close(self) -> None:
        """End the protection; idempotent."""
        self._leases.abandon([self.id])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lease({self.id!r})"


class Leases:
    """The open leases of one operator, and those that this controller opened. Safe to use from many threads."""

    def __init__(self, store: Store, operator: str, owner: Owner) -> None:
        self._store = store
        self._paths = Paths(operator)
        self._owner = owner
        self._lock = threading.Lock()
        self._opened = 0
        self._held: set[str] = set()
        self._in_doubt: set[str] = set()  # nobody uses them, but they may be there, and would pin manifests for ever

    def open(self, kind: str) -> Lease:
        """A new lease for some work; `kind` ("snapshot", "migration") is for people who look into the store."""
        number = self._owner.owned_number()
        with self._lock:
            self._opened += 1
            lease_id = f"{number:012d}-{self._opened:09d}-{self._owner.controller}"
        document = {"lease": lease_id, "kind": kind, "manifest": number, "controller": self._owner.controller}
        try:
            self._store.put(self._paths.lease(lease_id), json.dumps(document).encode())
        except StoreUnavailable:
            with self._lock:
                self._in_doubt.add(lease_id)
            raise
        with self._lock:
            self._held.add(lease_id)
        return Lease(self, lease_id)

    def open_ones(self) -> list[str]:
        """The ids of all leases that are open, by whomever, oldest first."""
        return [self._paths.lease_of_file(entry.key) for entry in self._store.list(self._paths.leases)]

    def opened_before(self, number: int) -> list[str]:
        """Open leases of controllers that the one which took over with manifest `number` has fenced off.

        Not all leases of others: if that one was fenced off itself since, some belong to who did it.
        """
        return [lease for lease in self.open_ones() if LeaseId.parse(lease).number < number]

    def holds(self, lease_id: str) -> bool:
        """Whether this controller opened the lease and has not closed it."""
        with self._lock:
            return lease_id in self._held

    def abandon(self, lease_ids: Iterable[str]) -> None:
        """Close leases: what was saved under them and is in no manifest becomes garbage.

        A commit in doubt is settled before: it could name states of these leases, and arrive after they are gone.
        """
        with self._lock:
            # In doubt until they are gone: if the store is away now, the next one to be abandoned takes them along.
            self._in_doubt.update(lease_ids)
            unused = set(self._in_doubt)
            self._held -= unused
        self._owner.settle()
        self._store.delete(map(self._paths.lease, sorted(unused)))
        with self._lock:
            self._in_doubt -= unused


def open_lease_id(lease: Lease | str) -> str:
    """The id to save under; a node knows only the id, the controller also whether it is open."""
    if isinstance(lease, str):
        LeaseId.parse(lease)
        return lease
    if not lease.is_open:
        raise LeaseClosed(lease.id)
    return lease.id
