"""The operator state manager: units of state to immutable objects and back."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from storage.codec import JSON, Secret, estimate_encoded_size, pack, unpack
from storage.errors import InvalidStorageInput, TransferFailed
from storage.state.budget import ByteBudget
from storage.state.leases import Lease, as_lease_id
from storage.state.paths import Paths
from storage.state.refs import StateRef
from storage.state.unit_id import UnitId
from storage.stores.protocol import Bytes, Store

BUDGET_BYTES = 256 << 20  # a quarter of what a small executor has besides its own state
THREADS = 16  # a store on loopback gains nothing beyond 4; one that is milliseconds away does

_NOTHING: Mapping[str, JSON] = MappingProxyType({})

Fetch = Callable[[StateRef], Bytes]


class SavedState(NamedTuple):
    """A unit's state as it was saved, and what was noted with it: its unit and batch."""

    state: Any
    meta: dict[str, Any]


class PackedState(NamedTuple):
    """A state as the bytes that the store keeps, and the ref it has or will have there."""

    ref: StateRef
    data: memoryview


class StateManager:
    """Saves and loads the state of one operator's units.

    Objects are immutable and never share a key, so any number of managers may work at the same time, and a save that is
    repeated after a timeout does no harm. A saved state is protected by the lease it was saved under, until a manifest
    names it. Safe to use from many threads; `budget_bytes` bounds the bytes in flight of all its calls together.

    `load_many` runs on `executor`, by default a pool of `threads` that belongs to the manager. An executor that runs
    its work inside `submit` makes the manager single-threaded.
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
        executor: Executor | None = None,
    ) -> None:
        if threads < 1:
            raise InvalidStorageInput(f"threads={threads} cannot load anything. Give at least one.")
        self.budget = ByteBudget(budget_bytes)
        self._store = store
        self._secret = secret
        self._paths = Paths(operator)
        self._compression = compression
        self._owns_executor = executor is None
        self._executor = executor or ThreadPoolExecutor(threads, thread_name_prefix=f"state-{operator}")

    def save(
        self, unit: UnitId, state: Any, *, batch: int, lease: Lease | str, meta: Mapping[str, JSON] = _NOTHING
    ) -> StateRef:
        """Make a unit's state durable; it includes all batches up to and including `batch`.

        `meta` is noted with it, besides its unit and batch.

        A state's size before it is encoded is an estimate; where that is too low, memory exceeds the budget by the
        difference until the state is stored.
        """
        lease_id = as_lease_id(lease)
        with self.budget.reserve(estimate_encoded_size(state)) as reservation:
            packed = self._pack(unit, state, batch, lease_id, meta)
            reservation.resize(packed.ref.size)
            return self.put(packed)

    def pack(
        self, unit: UnitId, state: Any, *, batch: int, lease: Lease | str, meta: Mapping[str, JSON] = _NOTHING
    ) -> PackedState:
        """Encode a state without storing it: the first half of `save`. Its memory is the caller's to bound."""
        return self._pack(unit, state, batch, as_lease_id(lease), meta)

    def put(self, packed: PackedState) -> StateRef:
        """Store a packed state: the second half of `save`. Safe to repeat."""
        self._store.put(packed.ref.key, packed.data)
        return packed.ref

    def fetch(self, ref: StateRef) -> Bytes:
        """Return the stored bytes of a state, unverified; `load` verifies them."""
        return self._store.get(ref.key)

    def load(self, ref: StateRef, *, fetch: Fetch | None = None) -> SavedState:
        """Return the state as it was saved.

        `fetch` may bring the bytes from elsewhere than the store: they are verified all the same. An object
        may have other parts than the state (older versions wrote "pending"): they are ignored.
        """
        saved = unpack((fetch or self.fetch)(ref), key=ref.key, secret=self._secret)
        return SavedState(saved.parts["state"], dict(saved.meta))

    def load_many(self, refs: Iterable[StateRef], *, fetch: Fetch | None = None) -> dict[UnitId, SavedState]:
        """Load states in parallel, within the memory budget for stored bytes, and return them in the order given.

        One that fails does not stop the others: `TransferFailed` has the reasons and the states that were loaded.
        """
        by_unit: dict[UnitId, StateRef] = {}
        for ref in refs:
            if ref.unit in by_unit:
                raise InvalidStorageInput(f"{ref.unit} is named twice in one call. Name every unit once.")
            by_unit[ref.unit] = ref
        futures = {unit: self._executor.submit(self._load, ref, fetch) for unit, ref in by_unit.items()}
        reasons = {unit: reason for unit, future in futures.items() if (reason := future.exception()) is not None}
        loaded = {unit: future.result() for unit, future in futures.items() if unit not in reasons}
        if reasons:
            raise TransferFailed(reasons, loaded)
        return loaded

    def close(self) -> None:
        """Finish what is under way and end the manager's own threads; the store stays open."""
        if self._owns_executor:
            self._executor.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pack(self, unit: UnitId, state: Any, batch: int, lease: str, meta: Mapping[str, JSON]) -> PackedState:
        key = self._paths.state(lease, unit.segment, batch)
        noted: dict[str, JSON] = {**meta, "unit": unit.to_json(), "batch": batch}
        data = pack({"state": state}, key=key, secret=self._secret, compression=self._compression, meta=noted)
        return PackedState(StateRef(key, unit, batch, len(data), lease), data)

    def _load(self, ref: StateRef, fetch: Fetch | None) -> SavedState:
        with self.budget.reserve(ref.size):
            return self.load(ref, fetch=fetch)
