"""Leases: there before anything is saved under them, gone after, and only for who owns the operator."""

import pytest

from storage.codec import Secret
from storage.errors import InvalidStorageInput, LeaseClosed, NotOwner, StoreUnavailable
from storage.state import Manifest, Manifests, StateManager, UnitId
from storage.stores.memory import MemoryStore
from storage.stores.protocol import Store
from tests.storage.state.fake_stores import FailingStore

UNIT = UnitId.from_number(0)


def owner(store: Store, secret: Secret) -> Manifests:
    manifests = Manifests(store, secret, "counts")
    manifests.recover(Manifest.first([UNIT]))
    return manifests


def test_an_open_lease_is_an_object_until_it_is_closed(any_store: Store, secret: Secret) -> None:
    leases = owner(any_store, secret).leases
    lease = leases.open("migration")
    assert leases.list_open() == [lease.id]
    assert [entry.key for entry in any_store.list("operators/counts/leases/")] == [
        f"operators/counts/leases/{lease.id}.json"
    ]
    lease.close()
    lease.close()
    assert leases.list_open() == []
    assert not lease.is_open


def test_a_lease_ends_with_its_block_even_if_that_fails(store: MemoryStore, secret: Secret) -> None:
    leases = owner(store, secret).leases
    with pytest.raises(KeyError), leases.open("snapshot"):
        raise KeyError
    assert leases.list_open() == []


def test_leases_sort_by_the_order_in_which_they_were_opened(store: MemoryStore, secret: Secret) -> None:
    manifests = owner(store, secret)
    opened = []
    for _ in range(12):
        opened.append(manifests.leases.open("snapshot").id)
        manifests.commit(lambda current: current)
    assert opened == sorted(opened) == manifests.leases.list_open()
    assert len(set(opened)) == 12


def test_nothing_is_saved_under_a_lease_that_is_known_to_be_closed(store: MemoryStore, secret: Secret) -> None:
    lease = owner(store, secret).leases.open("snapshot")
    lease.close()
    with StateManager(store, secret, "counts") as states, pytest.raises(LeaseClosed, match="Open a new lease"):
        states.save(UNIT, 1, batch=0, lease=lease)
    assert list(store.list("operators/counts/state/")) == []


def test_a_driver_that_has_not_recovered_opens_no_lease(store: MemoryStore, secret: Secret) -> None:
    with pytest.raises(InvalidStorageInput, match=r"Call recover\(\) first"):
        Manifests(store, secret, "counts").leases.open("snapshot")
    assert list(store.list()) == []


def test_a_fenced_driver_opens_no_lease(store: MemoryStore, secret: Secret) -> None:
    old, _ = owner(store, secret), owner(store, secret)
    with pytest.raises(NotOwner):
        old.commit(lambda current: current)
    with pytest.raises(NotOwner):
        old.leases.open("snapshot")


def test_a_new_driver_closes_the_leases_of_others_and_keeps_its_own(store: MemoryStore, secret: Secret) -> None:
    owner(store, secret).leases.open("migration")
    new = owner(store, secret)
    assert new.leases.list_open() == []
    mine = new.leases.open("migration")
    new.recover()
    assert new.leases.list_open() == [mine.id]


def test_a_driver_that_cannot_commit_leaves_the_leases_of_others_alone(secret: Secret) -> None:
    store = FailingStore()
    lease = owner(store, secret).leases.open("migration")
    store.fail_once("/manifest/", "before")
    with pytest.raises(StoreUnavailable):
        owner(store, secret)
    assert lease.id in owner_view(store)


def test_a_lease_whose_opening_got_no_answer_is_deleted_with_the_next_one(secret: Secret) -> None:
    store = FailingStore()
    leases = owner(store, secret).leases
    store.fail_once("/leases/", "after")
    with pytest.raises(StoreUnavailable):
        leases.open("snapshot")
    assert len(owner_view(store)) == 1
    leases.open("snapshot").close()
    assert owner_view(store) == []


def test_a_lease_is_closed_only_when_no_commit_is_in_doubt(secret: Secret) -> None:
    store = FailingStore()
    manifests = owner(store, secret)
    manifests.commit_batch(0, [])
    lease = manifests.leases.open("snapshot")
    with StateManager(store, secret, "counts") as states:
        ref = states.save(UNIT, 1, batch=0, lease=lease)
    store.fail_once("/manifest/", "late")
    with pytest.raises(StoreUnavailable):
        manifests.commit(lambda current: current.with_states([ref]))
    lease.close()
    (late,) = store.late
    with pytest.raises(Exception, match="already in"):
        late()
    latest = manifests.latest()
    assert latest is not None
    assert latest.units[UNIT] is None


def test_a_driver_that_finds_itself_fenced_closes_its_lease(secret: Secret) -> None:
    store = FailingStore()
    old = owner(store, secret)
    lease = old.leases.open("snapshot")
    store.fail_once("/manifest/", "before")
    with pytest.raises(StoreUnavailable):
        old.commit(lambda current: current)
    owner(store, secret)
    lease.close()
    assert owner_view(store) == []


def test_a_driver_that_is_fenced_while_it_recovers_leaves_the_new_leases_alone(
    store: MemoryStore, secret: Secret
) -> None:
    old, new = owner(store, secret), owner(store, secret)
    lease = new.leases.open("migration")
    old.recover()  # it does not know yet, and clears away what older ones left
    assert owner_view(store) == [lease.id]


def test_a_lease_stays_while_a_commit_stays_in_doubt(secret: Secret) -> None:
    store = FailingStore()
    manifests = owner(store, secret)
    lease = manifests.leases.open("snapshot")
    store.fault = lambda key: "before" if "/manifest/" in key else None
    with pytest.raises(StoreUnavailable):
        manifests.commit(lambda current: current)
    with pytest.raises(StoreUnavailable):
        lease.close()
    assert owner_view(store) == [lease.id]
    store.fault = lambda _: None
    lease.close()
    assert owner_view(store) == []


def test_a_lease_whose_closing_failed_is_deleted_with_the_next_one(secret: Secret) -> None:
    store = FailingStore()
    manifests = owner(store, secret)
    lease = manifests.leases.open("snapshot")
    store.fault = lambda key: "before" if "/manifest/" in key else None
    with pytest.raises(StoreUnavailable):
        manifests.commit(lambda current: current)
    with pytest.raises(StoreUnavailable):
        lease.close()
    store.fault = lambda _: None
    manifests.leases.open("snapshot").close()
    assert owner_view(store) == []


def owner_view(store: Store) -> list[str]:
    prefix = "operators/counts/leases/"
    return [entry.key.removeprefix(prefix).removesuffix(".json") for entry in store.list(prefix)]
