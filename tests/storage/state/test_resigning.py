"""A new secret for a stopped operator: the old one opens everything, or the new one does, whatever is killed where."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from storage import Secret, Store
from storage.codec import Json, pack, replace_signatures, unpack
from storage.errors import (
    BadObject,
    DamagedObject,
    ForeignObject,
    InvalidStorageInput,
    NotOwner,
    OperatorInUse,
    UnknownOperator,
)
from storage.state import InputLog, Manifest, Manifests, StateManager, UnitId, resign
from storage.stores.file import FileStore
from storage.stores.memory import MemoryStore
from tests.storage.killing import is_killed, survives

OLD, NEW, OTHER = (Secret.of(f"the {which} secret of these tests") for which in ("old", "new", "other"))
UNITS = [UnitId(0, task) for task in range(3)]
ROWS = pa.table({"word": ["a", "b"]})
RESULTS = ["operators/words/results/index/000000000000.index", "operators/words/description.pipeline"]


def prepare(store: Store, *, release: bool = True) -> None:
    """An operator with states, logged input, results, a description, garbage, and an object that is not signed."""
    manifests = Manifests(store, OLD, "words")
    manifests.recover(Manifest.first(UNITS, {"some": "assignment"}))
    log = InputLog(store, OLD, "words")
    for batch in range(3):
        manifests.commit_batch(batch, [log.append(batch, 0, {UNITS[0].number: ROWS})])
    with StateManager(store, OLD, "words") as manager, manifests.leases.open("snapshot") as lease:
        saved = [manager.save(unit, {"task": unit.task}, batch=1, lease=lease) for unit in UNITS[:2]]
        manager.save(UNITS[2], np.arange(10), batch=1, lease=lease)  # no manifest names it
        manifests.commit(lambda current: current.with_states(saved))
    for key in RESULTS:
        store.put(key, pack({"index": Json({"of": key})}, key=key, secret=OLD))
    store.put("operators/words/results/identity.json", b'{"results": "1"}')
    if release:
        manifests.release()


def opens(store: Store, secret: Secret) -> bool:
    """Whether the secret opens the operator, and with it everything; False if it is refused at the manifest."""
    try:
        manifest = Manifests(store, secret, "words").latest()
    except ForeignObject:
        return False
    assert manifest is not None
    assert (manifest.last_batch, manifest.assignment) == (2, {"some": "assignment"})
    with StateManager(store, secret, "words") as manager:
        loaded = manager.load_many(ref for ref in manifest.units.values() if ref)
    assert {unit: one.state for unit, one in loaded.items()} == {unit: {"task": unit.task} for unit in UNITS[:2]}
    log = InputLog(store, secret, "words")
    assert [log.read(ref, [UNITS[0].number])[0].equals(ROWS) for ref in manifest.log] == [True] * len(manifest.log)
    assert len(manifest.log) == 3
    for key in RESULTS:
        assert unpack(store.get(key), key=key, secret=secret).parts["index"] == {"of": key}
    return True


def test_the_new_secret_opens_everything_and_the_old_one_nothing() -> None:
    store = MemoryStore()
    prepare(store)
    before = {entry.key for entry in store.list()}
    assert resign(store, "words", OLD, NEW).deleted > 3
    assert opens(store, NEW)
    assert not opens(store, OLD)
    after = {entry.key for entry in store.list()}
    assert not after - before - {key for key in after if "/manifest/" in key}
    for key in after - {"operators/words/results/identity.json"}:
        with pytest.raises(ForeignObject):
            unpack(store.get(key), key=key, secret=OLD)
        assert bytes(store.get(key)[8:10]) == b"\x01\x00"  # in the format of one signature
    assert len([key for key in after if "/state/" in key]) == 2
    assert len([key for key in after if "/manifest/" in key]) == 1


def test_the_operator_continues_with_the_new_secret() -> None:
    store = MemoryStore()
    prepare(store)
    resign(store, "words", OLD, NEW)
    manifests = Manifests(store, NEW, "words")
    manifests.recover()
    manifests.commit_batch(3, [InputLog(store, NEW, "words").append(3, 0, {0: ROWS})])
    latest = manifests.latest()
    assert latest is not None
    assert (latest.last_batch, len(latest.log)) == (3, 4)
    assert not latest.is_released


def test_a_repeated_call_changes_no_object_but_the_manifest() -> None:
    store = MemoryStore()
    prepare(store)
    resign(store, "words", OLD, NEW)
    before = {e.key: bytes(store.get(e.key)) for e in store.list() if "/manifest/" not in e.key}
    resign(store, "words", OLD, NEW)
    assert {e.key: bytes(store.get(e.key)) for e in store.list() if "/manifest/" not in e.key} == before
    assert opens(store, NEW)


def test_an_operator_whose_driver_has_not_ended_is_refused_unless_it_is_fenced_off() -> None:
    store = MemoryStore()
    prepare(store, release=False)
    with pytest.raises(OperatorInUse, match="has not recorded its end"):
        resign(store, "words", OLD, NEW)
    assert opens(store, OLD)
    running = Manifests(store, OLD, "words")
    running.recover()
    with pytest.raises(OperatorInUse):
        resign(store, "words", OLD, NEW)
    resign(store, "words", OLD, NEW, fence=True)
    with pytest.raises((NotOwner, ForeignObject)):
        running.commit_batch(3, [])
    assert opens(store, NEW)


def test_a_driver_that_starts_meanwhile_wins() -> None:
    class Starting(MemoryStore):
        """Starts a driver at the first put."""

        def put(self, key: str, data: object, **options: object) -> None:
            if started is None:
                start()
            super().put(key, data, **options)  # type: ignore[arg-type]

    started: Manifests | None = Manifests(MemoryStore(), OLD, "words")
    store = Starting()

    def start() -> None:
        nonlocal started
        started = Manifests(store, OLD, "words")
        started.recover()

    prepare(store)
    started = None
    with pytest.raises(NotOwner):
        resign(store, "words", OLD, NEW)
    assert opens(store, OLD)
    started.commit_batch(3, [])  # type: ignore[attr-defined]


def test_wrong_secrets_and_names_are_refused_and_change_nothing() -> None:
    store = MemoryStore()
    prepare(store)
    before = {entry.key: bytes(store.get(entry.key)) for entry in store.list()}
    with pytest.raises(InvalidStorageInput):
        resign(store, "words", OLD, OLD)
    with pytest.raises(ForeignObject):
        resign(store, "words", OTHER, NEW)
    with pytest.raises(UnknownOperator):
        resign(store, "wrods", OLD, NEW)
    assert {entry.key: bytes(store.get(entry.key)) for entry in store.list()} == before


def test_a_damaged_object_leaves_the_old_secret_in_force() -> None:
    store = MemoryStore()
    prepare(store)
    manifest = Manifests(store, OLD, "words").latest()
    assert manifest is not None
    ref = manifest.units[UNITS[0]]
    assert ref is not None
    whole = bytes(store.get(ref.key))
    store.put(ref.key, whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DamagedObject):
        resign(store, "words", OLD, NEW)
    assert Manifests(store, OLD, "words").latest() is not None
    store.put(ref.key, whole)
    resign(store, "words", OLD, NEW)
    assert opens(store, NEW)


def test_one_of_two_signatures_is_enough_and_neither_can_be_forged() -> None:
    data = pack({"x": ROWS}, key="k", secret=OLD)
    twice = replace_signatures(data, key="k", known=[OLD, NEW], wanted=[OLD, NEW])
    assert twice is not None
    for secret in (OLD, NEW):
        assert unpack(twice, key="k", secret=secret).parts["x"].equals(ROWS)
    with pytest.raises(ForeignObject):
        unpack(twice, key="k", secret=OTHER)
    for place in range(len(twice)):
        flipped = bytearray(twice)
        flipped[place] ^= 1
        with pytest.raises(BadObject):
            unpack(flipped, key="k", secret=NEW)
    assert replace_signatures(twice, key="k", known=[OLD, NEW], wanted=[OLD, NEW]) is None
    with pytest.raises(ForeignObject):
        replace_signatures(data, key="k", known=[OTHER, NEW], wanted=[NEW])
    once = replace_signatures(twice, key="k", known=[OLD, NEW], wanted=[OLD])
    assert once == data


def resign_with(store: Store, old: bytes, new: bytes) -> None:
    """In another process, which gets no secrets as objects."""
    resign(store, "words", Secret.of(old), Secret.of(new))


def copy_of(store: Store, copy: Store) -> Store:
    for entry in store.list():
        copy.put(entry.key, bytes(store.get(entry.key)))
    return copy


def check_left(store: Store) -> tuple[bool, bool]:
    """Exactly one secret opens everything, and another call finishes; return which one."""
    opened = opens(store, OLD), opens(store, NEW)
    assert sum(opened) == 1
    resign(store, "words", OLD, NEW)
    assert opens(store, NEW)
    assert not [entry.key for entry in store.list() if "/leases/" in entry.key]
    return opened


def test_killed_before_any_call_of_the_store_one_secret_opens_everything() -> None:
    template = MemoryStore()
    prepare(template)
    seen, survived = [], 0
    while is_killed(resign_with, store := copy_of(template, MemoryStore()), survived, OLD.reveal(), NEW.reveal()):
        seen.append(check_left(store))
        survived += 1
    assert survived > 30
    assert seen == sorted(seen, reverse=True)  # the old secret, and from one call on the new one
    assert len(set(seen)) == 2


@pytest.mark.slow
def test_a_process_killed_with_kill_9_leaves_one_secret_in_force(tmp_path: Path) -> None:
    for survived in (3, 17, 29, 40):
        folder = tmp_path / str(survived)
        store = FileStore(folder)
        prepare(store)
        assert not survives(resign_with, folder, survived, OLD.reveal(), NEW.reveal())
        check_left(store)
        store.close()
