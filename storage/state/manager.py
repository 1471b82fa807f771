"""The operator state manager: units of state to immutable objects and back, one or many at a time."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

from storage.codec import JSON, Secret, encoded_size_hint, pack, unpack
from storage.errors import InvalidStorageInput
from storage.state.budget import ByteBudget
from storage.state.leases import Lease, open_lease_id
from storage.state.paths import Paths
from storage.state.refs import StateRef
from storage.state.transfer import Progress, Transfer
from storage.state.unit import Unit
from storage.stores.protocol import Bytes, Store

BUDGET_BYTES = 256 << 20  # a quarter of what a small executor has besides its own state
THREADS = 16  # a store on loopback gains nothing beyond 4; one that is milliseconds away does

Fetch = Callable[[StateRef], Bytes]


class SavedState(NamedTuple):
    """A unit's state as it comes back, with the records that were waiting for it and the notes of who saved it."""

    state: Any
    pending_records: Any
    meta: dict[str, Any]


class PackedState(NamedTuple):
    """A state as the very bytes that the store keeps, and the name that it has there or will have."""

    ref: StateRef
    data: memoryview


@dataclass(frozen=True)
class Save:
    """One unit to save: its state after `batch`, and the records that it has not processed.

    `keys` may say which keys a set of keys holds; they are kept with the state, as JSON.
    """

    unit: Unit
    state: Any
    pending_records: Any = None
    batch: int = field(kw_only=True)
    keys: Sequence[JSON] | None = field(kw_only=True, default=None)


class StateManager:
    """Saves and loads the state of one operator's units.

    Objects are immutable and never share a name, so any number of managers may work at the same time, and a save that
    is repeated after a doubt does no harm. A saved state is protected by the lease it was saved under, until a
    manifest names it. Safe to use from many threads; `threads` and `budget_bytes` bound all its transfers together.
    """

    def __init__(
        self,
        store: Store,
        secret: Secret,
        operator: str,
        *,
        compression: str = "auto",
        threads: int = THREADS,
        budget_bytes: int = BUDGET_BYTES,
    ) -> None:
        if threads < 1:
            raise InvalidStorageInput(f"{threads} threads move nothing. Give at least one.")
        self.budget = ByteBudget(budget_bytes)
        self._store = store
        self._secret = secret
        self._paths = Paths(operator)
        self._compression = compression
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"state-{operator}")

    def save(
        self,
        unit: Unit,
        state: Any,
        pending_records: Any = None,
        *,
        batch: int,
        lease: Lease | str,
        keys: Sequence[JSON] | None = None,
    ) -> StateRef:
        """Make a unit's state durable; it includes all batches up to and including `batch`."""
        return self._save(Save(unit, state, pending_records, batch=batch, keys=keys), open_lease_id(lease))

    def pack(self, unit: Unit, state: Any, *, batch: int, lease: Lease | str) -> PackedState:
        """The first half of `save`: for bytes that go elsewhere too. Whoever holds them counts their memory."""
        return self._packed(Save(unit, state, batch=batch), open_lease_id(lease))

    def put(self, packed: PackedState) -> StateRef:
        """The second half of `save`; safe to repeat."""
        self._store.put(packed.ref.key, packed.data)
        return packed.ref

    def fetch(self, ref: StateRef) -> Bytes:
        """The bytes of a saved state, as they are; verified when they are loaded."""
        return self._store.get(ref.key).data

    def load(self, ref: StateRef, *, columns: bool = False, fetch: Fetch | None = None) -> SavedState:
        """The state as it was saved; with `columns`, as columns where it was stored as such.

        `fetch` may bring the bytes from elsewhere than the store: they are verified all the same.
        """
        data = (fetch or self.fetch)(ref)
        saved = unpack(data, key=ref.key, secret=self._secret, columns=columns)
        return SavedState(saved.parts["state"], saved.parts.get("pending"), dict(saved.meta))

    def save_many(
        self,
        items: Iterable[Save],
        *,
        lease: Lease | str,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Transfer[StateRef]:
        """Save units in the background, in parallel, within the memory budget.

        A state's size before it is encoded is an estimate; where it is far off, memory is over the budget by that
        much, until that state is stored.
        """
        lease_id = open_lease_id(lease)
        work: dict[Unit, Callable[[], tuple[StateRef, int]]] = {}
        for item in items:
            _refuse_twice(item.unit, work)
            work[item.unit] = partial(self._save_measured, item, lease_id)
        return Transfer(self._executor, work, on_progress)

    def load_many(
        self,
        refs: Iterable[StateRef],
        *,
        columns: bool = False,
        fetch: Fetch | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Transfer[SavedState]:
        """Load units in the background, in parallel, within the memory budget for stored bytes on their way."""
        work: dict[Unit, Callable[[], tuple[SavedState, int]]] = {}
        for ref in refs:
            _refuse_twice(ref.unit, work)
            work[ref.unit] = partial(self._load_measured, ref, columns, fetch)
        return Transfer(self._executor, work, on_progress)

    def close(self) -> None:
        """Finish what is under way, and give the threads back; the store stays open."""
        self._executor.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _save(self, item: Save, lease: str) -> StateRef:
        with self.budget.taken(sum(map(encoded_size_hint, _parts(item).values()))) as grant:
            packed = self._packed(item, lease)
            grant.resize(packed.ref.size)
            return self.put(packed)

    def _packed(self, item: Save, lease: str) -> PackedState:
        key = self._paths.state(lease, item.unit.segment, item.batch)
        meta: dict[str, Any] = {"unit": item.unit.to_json(), "batch": item.batch}
        if item.keys is not None:
            meta["keys"] = list(item.keys)
        data = pack(_parts(item), key=key, secret=self._secret, compression=self._compression, meta=meta)
        return PackedState(StateRef(key, item.unit, item.batch, len(data), lease), data)

    def _save_measured(self, item: Save, lease: str) -> tuple[StateRef, int]:
        ref = self._save(item, lease)
        return ref, ref.size

    def _load_measured(self, ref: StateRef, columns: bool, fetch: Fetch | None) -> tuple[SavedState, int]:
        with self.budget.taken(ref.size):
            return self.load(ref, columns=columns, fetch=fetch), ref.size


def _parts(item: Save) -> dict[str, Any]:
    pending = {} if item.pending_records is None else {"pending": item.pending_records}
    return {"state": item.state, **pending}


def _refuse_twice(unit: Unit, work: dict[Unit, Any]) -> None:
    if unit in work:
        raise InvalidStorageInput(f"{unit} is twice in one transfer. Give every unit once.")
