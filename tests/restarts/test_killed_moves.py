"""Exports, imports, upgrades and signatures in a process that kill -9 ends at every step: the old state or the new.

The steps are the calls of the store, and for an export the operations on its files. The process is a real one, so that
nothing tidies up behind it; the same for every call of a store in memory is in the tests of each.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import elastic
import storage
from elastic.job.job import Job
from storage import Secret, Store
from storage.state import Manifests
from storage.stores.file import FileStore
from tests.restarts.test_exports import SECRET, check_created, create, export, load, start
from tests.restarts.test_upgrades import NAMES, totals
from tests.restarts.versions import Spending1, Spending2
from tests.storage.killing import survives, survives_files

pytestmark = pytest.mark.slow
_MOST = 400  # steps, at most
OTHER = "another secret of these tests"


def steps(stride: int = 1) -> Iterator[int]:
    return iter(range(0, _MOST, stride))


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A store with a job that has stopped after two batches."""
    folder = tmp_path / "prepared"
    start(folder, Spending1(), 2, tasks=3, nodes=1).stop()
    return folder


def test_an_export_is_complete_or_absent(prepared: Path, tmp_path: Path) -> None:
    places = tmp_path / "exports"
    places.mkdir()
    for step in steps():
        target = places / f"export-{step}"
        whole = survives_files(export, places, step, prepared, target)
        if not whole and not target.exists():
            export(prepared, target)  # tidies up behind the one that was killed
        load(target, tmp_path / f"copy-{step}")
        assert [path.name for path in places.iterdir() if path.name.startswith(".")] == []
        if whole:
            break
    assert 8 < step < _MOST - 1


def test_an_import_leaves_the_whole_job_or_none(tmp_path: Path) -> None:
    seen = set()
    for step in steps():
        folder = tmp_path / str(step)
        whole = survives(create, folder, step)
        store = FileStore(folder)
        found = Manifests(store, Secret.of(SECRET), "copy").latest()
        seen.add(found is not None)
        if found is None:
            create(store)
        check_created(store)
        store.close()
        if whole:
            break
    assert seen == {True, False}
    assert 5 < step < _MOST - 1


def resign(store: Store) -> None:
    """Sign through a store that kills this process."""
    storage.open = lambda *_, **__: store
    elastic.resign("spending", store="file:///nowhere", old_secret=SECRET, new_secret=OTHER)


def opens(folder: Path, secret: str) -> bool:
    store = FileStore(folder)
    try:
        return Manifests(store, Secret.of(secret), "spending").latest() is not None
    except storage.errors.ForeignObject:
        return False
    finally:
        store.close()


def check_signatures(prepared: Path, tmp_path: Path, stride: int) -> None:
    seen = set()
    for step in steps(stride):
        folder = tmp_path / str(step)
        shutil.copytree(prepared, folder)
        whole = survives(resign, folder, step)
        opened = opens(folder, SECRET), opens(folder, OTHER)
        assert sum(opened) == 1, step
        seen.add(opened)
        secret = SECRET if opened[0] else OTHER
        target = tmp_path / f"export-{step}"
        elastic.export_state("spending", target, store=folder.as_uri(), secret=secret)  # reads all state
        elastic.resign("spending", store=folder.as_uri(), old_secret=SECRET, new_secret=OTHER)
        assert opens(folder, OTHER)
        if whole:
            break
    assert seen == {(True, False), (False, True)}
    assert 20 < step < _MOST - 1


def test_a_new_signature_is_on_everything_or_on_nothing(prepared: Path, tmp_path: Path) -> None:
    check_signatures(prepared, tmp_path, stride=7)


@pytest.mark.long
def test_a_new_signature_may_be_killed_at_any_call_of_the_store(prepared: Path, tmp_path: Path) -> None:
    check_signatures(prepared, tmp_path, stride=1)


def upgrade(store: Store) -> None:
    """Run the next version over one more batch, through a store that kills this process."""
    storage.open = lambda *_, **__: store
    run_upgraded(Path("/nowhere")).stop()


def run_upgraded(folder: Path) -> Job:
    return start(folder, Spending2(), 3, tasks=3, nodes=1)


def check_upgrades(prepared: Path, tmp_path: Path, stride: int) -> None:
    for step in steps(stride):
        folder = tmp_path / str(step)
        shutil.copytree(prepared, folder)
        whole = survives(upgrade, folder, step)
        with run_upgraded(folder) as job:
            found = {name: job.state(name) for name in NAMES}
        assert {name: value["total"] for name, value in found.items()} == totals(3), step
        assert [found[name]["from"] for name in ("ada", "fay", "cy")] == [["1"]] * 3, step
        if whole:
            break
    assert 30 < step < _MOST - 1


def test_a_killed_upgrade_is_repeated_or_done_and_no_value_is_upgraded_twice(prepared: Path, tmp_path: Path) -> None:
    check_upgrades(prepared, tmp_path, stride=13)


@pytest.mark.long
def test_an_upgrade_may_be_killed_at_any_call_of_the_store(prepared: Path, tmp_path: Path) -> None:
    check_upgrades(prepared, tmp_path, stride=1)
