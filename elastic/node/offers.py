"""Packed states that other nodes may download: a node has them before the store does, and need not read them back."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from elastic import threads
from elastic.core.ids import UnitId
from elastic.wire import Refused
from storage.state import PackedState, StateRef

OFFERED_BYTES = 128 << 20  # states in flight, besides those that stay: half of what transfers may take


@dataclass
class _Offer:
    packed: PackedState
    stored: bool = False


class Offers:
    """Offered states by key, until their units are dropped. Safe to use from many threads.

    Invariant: above the limit there are only states that are not in the store yet. Of the others the oldest goes first,
    and a node that wants one of these reads the store.
    """

    def __init__(self, limit_bytes: int = OFFERED_BYTES) -> None:
        self._limit = limit_bytes
        self._offers: dict[str, _Offer] = {}
        self._lock = threads.Lock()

    @property
    def size(self) -> int:
        with self._lock:
            return self._size()

    @property
    def has_room(self) -> bool:
        """Whether one more state may be packed."""
        return self.size < self._limit

    def put(self, packed: PackedState) -> None:
        with self._lock:
            self._offers[packed.ref.key] = _Offer(packed)
            self._make_room()

    def mark_stored(self, ref: StateRef) -> None:
        with self._lock:
            if ref.key in self._offers:
                self._offers[ref.key].stored = True
                self._make_room()

    def has(self, ref: StateRef) -> bool:
        with self._lock:
            return ref.key in self._offers

    def download(self, document: dict[str, Any]) -> memoryview:
        """Handle a download."""
        with self._lock:
            offer = self._offers.get(document["state"])
        if offer is None:
            raise Refused(f"{document['state']} is not offered here")
        return offer.packed.data

    def drop(self, units: Iterable[UnitId]) -> None:
        """Withdraw the states of units that another node has installed."""
        dropped = set(units)
        with self._lock:
            for key in [key for key, offer in self._offers.items() if offer.packed.ref.unit in dropped]:
                del self._offers[key]

    def _size(self) -> int:
        return sum(offer.packed.ref.size for offer in self._offers.values())

    def _make_room(self) -> None:
        for key in [key for key, offer in self._offers.items() if offer.stored]:
            if self._size() <= self._limit:
                return
            del self._offers[key]
