"""The collector deletes garbage and keeps what a process may still need; test_simulation has its races."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from storage.codec import Secret
from storage.errors import InvalidStorageInput
from storage.state import CollectionResult, Collector, InputLog, Manifest, Manifests, StateManager, StateRef, UnitId
from storage.state.leases import Lease
from storage.stores.memory import MemoryStore
from storage.stores.protocol import ObjectInfo, Store

SECRET = Secret.of("a secret for tests only")
TASKS = [UnitId.from_number(0), UnitId.from_number(1)]


def owner(store: Store) -> Manifests:
    manifests = Manifests(store, SECRET, "counts")
    manifests.recover(Manifest.first(TASKS))
    return manifests


def save(store: Store, unit: UnitId, batch: int, lease: Lease) -> StateRef:
    with StateManager(store, SECRET, "counts") as states:
        return states.save(unit, "state", batch=batch, lease=lease)


def snapshot(store: Store, manifests: Manifests, batch: int) -> list[StateRef]:
    with manifests.leases.open("snapshot") as lease:
        refs = [save(store, unit, batch, lease) for unit in TASKS]
        manifests.commit(lambda current: current.with_states(refs))
    return refs


def run_batch(store: Store, manifests: Manifests, batch: int) -> None:
    log = InputLog(store, SECRET, "counts")
    manifests.commit_batch(batch, [log.append(batch, 0, {0: pa.table({"a": [batch]})})])


def collect(store: Store, keep: int = 1) -> CollectionResult:
    return Collector(store, SECRET, "counts", keep=keep).collect()


def there(store: Store, folder: str) -> list[str]:
    return [entry.key for entry in store.list(f"operators/counts/{folder}/")]


def test_old_states_logs_and_manifests_are_deleted_and_counted(any_store: Store) -> None:
    manifests = owner(any_store)
    for batch in range(3):
        run_batch(any_store, manifests, batch)
        refs = snapshot(any_store, manifests, batch)
    size = sum(entry.size for entry in any_store.list())
    collected = collect(any_store)
    assert collected[:4] == (4, 3, 6, 0)
    assert collected.bytes == size - sum(entry.size for entry in any_store.list())
    assert there(any_store, "state") == [ref.key for ref in refs]
    assert (there(any_store, "log"), len(there(any_store, "manifest"))) == ([], 1)
    assert collect(any_store) == CollectionResult()


def test_what_is_saved_under_an_open_lease_stays_until_the_lease_is_closed(store: MemoryStore) -> None:
    lease = owner(store).leases.open("migration")
    ref = save(store, TASKS[0], 0, lease)
    assert collect(store).states == 0
    assert there(store, "state") == [ref.key]
    lease.close()
    assert collect(store).states == 1


def test_the_newest_manifests_are_kept_with_the_states_that_they_name(store: MemoryStore) -> None:
    manifests = owner(store)
    run_batch(store, manifests, 0)
    refs = [snapshot(store, manifests, 0) for _ in range(4)]
    collect(store, keep=3)
    assert sorted(there(store, "state")) == sorted(ref.key for kept in refs[1:] for ref in kept)


def test_an_open_lease_keeps_all_that_the_manifest_named_when_it_was_opened(store: MemoryStore) -> None:
    manifests = owner(store)
    for batch in range(2):
        run_batch(store, manifests, batch)
    named = snapshot(store, manifests, 0)
    lease = manifests.leases.open("restore")
    for _ in range(5):
        snapshot(store, manifests, 1)
    collect(store)
    assert {ref.key for ref in named} <= set(there(store, "state"))
    assert len(there(store, "log")) == 1
    lease.close()
    collect(store)
    assert not {ref.key for ref in named} & set(there(store, "state"))
    assert there(store, "log") == []


class InterruptedStore(MemoryStore):
    """Lets something happen right after a folder was listed for the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.after_listing: dict[str, Callable[[], object]] = {}

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        found = super().list(prefix, timeout=timeout)
        self.after_listing.pop(prefix.split("/")[2], lambda: None)()
        return found


@pytest.mark.parametrize("folder", ["state", "log", "manifest", "leases"])
def test_a_collection_loses_nothing_that_happens_meanwhile(folder: str) -> None:
    store = InterruptedStore()
    manifests = owner(store)
    for batch in range(2):
        run_batch(store, manifests, batch)
    named = snapshot(store, manifests, 0)

    saved = []

    def move_slowly_while_others_save() -> None:
        lease = manifests.leases.open("migration")  # reads the states in `named`, and is not over
        saved.append(save(store, TASKS[0], 1, lease))
        for _ in range(5):
            snapshot(store, manifests, 1)

    store.after_listing[folder] = move_slowly_while_others_save
    collect(store)
    latest = manifests.latest()
    assert latest is not None
    assert len(saved) == 1
    assert {ref.key for ref in [*named, *saved, *latest.units.values()] if ref} <= set(there(store, "state"))
    assert len(there(store, "log")) == 1


def test_input_that_was_never_committed_is_deleted_with_its_batch(store: MemoryStore) -> None:
    manifests = owner(store)
    log = InputLog(store, SECRET, "counts")
    for batch in (0, 1):
        log.append(batch, 0, {0: pa.table({"a": [1]})})
    run_batch(store, manifests, 0)
    assert collect(store).logs == 0
    snapshot(store, manifests, 0)
    assert collect(store).logs == 2
    assert len(there(store, "log")) == 1


def test_leases_of_fenced_drivers_protect_nothing(store: MemoryStore) -> None:
    old = owner(store)
    owner(store)
    save(store, TASKS[0], 0, old.leases.open("migration"))  # it does not know yet that it is fenced
    collected = collect(store)
    assert (collected.states, collected.leases) == (1, 1)


def test_nothing_is_collected_before_there_is_a_manifest(store: MemoryStore) -> None:
    InputLog(store, SECRET, "counts").append(0, 0, {0: pa.table({"a": [1]})})
    assert collect(store) == CollectionResult()
    assert len(there(store, "log")) == 1


def test_other_operators_are_left_alone(store: MemoryStore) -> None:
    others = Manifests(store, SECRET, "counts-2")
    others.recover()
    with others.leases.open("snapshot") as lease, StateManager(store, SECRET, "counts-2") as states:
        states.save(TASKS[0], 1, batch=0, lease=lease)
    owner(store)
    collect(store)
    assert len(list(store.list("operators/counts-2/"))) == 2


@pytest.mark.parametrize("stray", ["manifest/notes.manifest", "log/x/y.log", "leases/mine.json"])
def test_a_stray_object_is_named_and_nothing_is_collected(store: MemoryStore, stray: str) -> None:
    run_batch(store, manifests := owner(store), 0)
    snapshot(store, manifests, 0)
    store.put(f"operators/counts/{stray}", b"")
    before = list(store.list())
    with pytest.raises(InvalidStorageInput, match=r"notes|x/y|mine"):
        collect(store)
    assert list(store.list()) == before


def test_at_least_one_manifest_is_kept() -> None:
    with pytest.raises(InvalidStorageInput, match="at least one"):
        Collector(MemoryStore(), SECRET, "counts", keep=0)
