"""One operator's life on every store: log, commit, snapshot, collect, lose the driver, recover, replay."""

import pyarrow as pa
import pytest

from storage import Secret, Store
from storage.errors import NotOwner
from storage.state import Collector, InputLog, Manifest, Manifests, StateManager, UnitId

SECRET = Secret.of("sixteen bytes at least")
TASKS = range(4)


def rows(batch: int, partition: int, task: int) -> pa.Table:
    return pa.table({"key": [f"{batch}-{partition}-{task}"], "count": [1]})


def log_and_commit(driver: Manifests, log: InputLog, batch: int) -> Manifest:
    refs = [log.append(batch, part, {task: rows(batch, part, task) for task in TASKS}) for part in range(2)]
    return driver.commit_batch(batch, refs)


def test_a_new_driver_finds_every_state_and_every_row_after_it(store: Store) -> None:
    log = InputLog(store, SECRET, "words")
    first = Manifests(store, SECRET, "words")
    first.recover(Manifest.first(UnitId.from_number(task) for task in TASKS))
    for batch in range(3):
        log_and_commit(first, log, batch)
    with StateManager(store, SECRET, "words") as manager, first.leases.open("snapshot") as lease:
        saved = [manager.save(UnitId(0, task), {f"word-{task}": task}, batch=2, lease=lease) for task in TASKS]
        first.commit(lambda now: now.with_states(saved))
    log_and_commit(first, log, 3)
    assert Collector(store, SECRET, "words", keep=1).collect().logs == 6

    second = Manifests(store, SECRET, "words")
    found = second.recover()
    with pytest.raises(NotOwner):
        log_and_commit(first, log, 4)
    assert found.last_batch == 3
    with StateManager(store, SECRET, "words") as manager:
        loaded = manager.load_many(ref for ref in found.units.values() if ref)
    assert {unit: state.state for unit, state in loaded.items()} == {
        UnitId.from_number(task): {f"word-{task}": task} for task in TASKS
    }
    assert [ref.batch for ref in found.log] == [3, 3]
    replayed = [log.read(ref, [1, 2]) for ref in found.log]
    assert replayed == [{task: rows(3, part, task) for task in (1, 2)} for part in range(2)]
