"""One operator's life on every store: log, commit, snapshot, collect, lose the controller, recover, replay."""

import pyarrow as pa
import pytest

from storage import Secret, Store
from storage.errors import NotOwner
from storage.state import Collector, InputLog, Manifest, Manifests, Save, StateManager, Unit

SECRET = Secret.of("sixteen bytes at least")
TASKS = range(4)


def rows(batch: int, partition: int, task: int) -> pa.Table:
    return pa.table({"key": [f"{batch}-{partition}-{task}"], "count": [1]})


def log_and_commit(controller: Manifests, log: InputLog, batch: int) -> Manifest:
    refs = [log.append(batch, part, {task: rows(batch, part, task) for task in TASKS}) for part in range(2)]
    return controller.commit_batch(batch, refs)


def test_a_new_controller_finds_every_state_and_every_row_after_it(store: Store) -> None:
    log = InputLog(store, SECRET, "words")
    first = Manifests(store, SECRET, "words")
    first.recover(Manifest.first(Unit.of_task(task) for task in TASKS))
    for batch in range(3):
        log_and_commit(first, log, batch)
    with StateManager(store, SECRET, "words") as manager, first.leases.open("snapshot") as lease:
        saves = [Save(Unit.of_task(task), {f"word-{task}": task}, batch=2) for task in TASKS]
        saved = manager.save_many(saves, lease=lease).result()
        first.commit(lambda now: now.with_states(saved.values()))
    log_and_commit(first, log, 3)
    assert Collector(store, SECRET, "words", keep=1).collect().logs == 6

    second = Manifests(store, SECRET, "words")
    found = second.recover()
    with pytest.raises(NotOwner):
        log_and_commit(first, log, 4)
    assert found.last_batch == 3
    with StateManager(store, SECRET, "words") as manager:
        loaded = manager.load_many(ref for ref in found.units.values() if ref).result()
    assert {unit: state.state for unit, state in loaded.items()} == {
        Unit.of_task(task): {f"word-{task}": task} for task in TASKS
    }
    replayed = list(log.replay(found.log, dict.fromkeys([1, 2], 2), up_to=found.last_batch))
    assert [piece.rows["key"].to_pylist() for piece in replayed] == [["3-0-1"], ["3-0-2"], ["3-1-1"], ["3-1-2"]]
