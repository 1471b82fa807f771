"""The file store on disks that are full, forbidden or failing, and under writers that are killed."""

import errno
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.errors import ObjectMissing, StorageError, StoreFull, StoreRefused, StoreTimeout, StoreUnavailable
from storage.stores.file import FileStore, files
from tests.storage.stores.children import (
    content_of,
    processes,
    use_without_permission,
    write_beyond_the_limit,
    write_until_killed,
    writing,
)
from tests.storage.stores.helpers import bytes_at

KEY = "a/b.bin"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    mount = subprocess.run(  # noqa: S603
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if mount.returncode:
        pytest.skip("a small file system cannot be mounted without root")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)  # noqa: S603, S607


def test_a_full_disk_is_reported_and_harms_nothing(full_disk: Path) -> None:
    store = FileStore(full_disk)
    store.put(KEY, b"kept" * 100_000)
    writes: list[Callable[[], None]] = [
        lambda: store.put(KEY, bytes(700_000)),
        lambda: store.put_if_absent("new.bin", bytes(700_000)),
    ]
    for write in writes:
        with pytest.raises(StoreFull, match="Free some space") as full:
            write()
        assert full.value.store == store.url
    assert writing(full_disk) == []
    assert bytes_at(store, KEY) == b"kept" * 100_000
    assert [entry.key for entry in store.list()] == [KEY]
    store.delete([KEY])
    store.put(KEY, bytes(700_000))
    store.close()


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreFull),
        (errno.EFBIG, StoreRefused),
        (errno.EACCES, StoreRefused),
        (errno.EPERM, StoreRefused),
        (errno.EROFS, StoreRefused),
        (errno.ETIMEDOUT, StoreTimeout),
        (errno.EIO, StoreUnavailable),
        (errno.ESTALE, StoreUnavailable),
    ],
)
@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_failing_step_of_a_write_is_a_typed_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, error: type[StorageError]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    store = FileStore(tmp_path)
    store.put(KEY, b"kept")
    with monkeypatch.context() as broken:
        broken.setattr(os, step, fail)
        for write, key in ((store.put, KEY), (store.put_if_absent, "new.bin")):
            with pytest.raises(error, match=os.strerror(number)) as failed:
                write(key, b"new")
            assert type(failed.value) is error
    assert writing(tmp_path) == []
    assert bytes_at(store, KEY) == b"kept"
    assert [entry.key for entry in store.list()] == [KEY]
    store.close()


def test_a_file_system_without_locks_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(files, "flock", fail)
    with pytest.raises(StoreRefused, match="Choose a folder"):
        FileStore(tmp_path).put(KEY, b"")
    assert writing(tmp_path) == []


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(StoreRefused, match="Not a directory"):
            FileStore(folder)


def in_a_process(target: Callable[[Path], None], folder: Path) -> None:
    child = processes.Process(target=target, args=(folder,))
    child.start()
    child.join(30)
    assert child.exitcode == 0


def test_an_object_above_the_limit_of_file_sizes_is_refused(tmp_path: Path) -> None:
    in_a_process(write_beyond_the_limit, tmp_path)


def test_a_folder_of_another_user_can_be_read_and_refuses_writes() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = FileStore(folder, shared=True)
        store.put(KEY, b"kept")
        store.put("private.bin", b"")
        store.close()
        (folder / "private.bin").chmod(0)
        for path in (folder, folder / "a", folder / ".elastic", *(folder / ".elastic").iterdir()):
            path.chmod(0o555)
        try:
            in_a_process(use_without_permission, folder)
        finally:
            for path in (folder, folder / "a", folder / ".elastic", *(folder / ".elastic").iterdir()):
                path.chmod(0o755)


def test_nothing_acknowledged_is_lost_and_nothing_is_half_written_when_writers_are_killed(tmp_path: Path) -> None:
    kills, leftovers, done = 50, 0, 0
    for kill in range(kills):
        first = kill * 10_000
        acknowledged, child_end = processes.Pipe(duplex=False)
        child = processes.Process(target=write_until_killed, args=(tmp_path, first, child_end))
        child.start()
        child_end.close()
        assert acknowledged.poll(30)
        time.sleep(kill % 10 * 0.001)  # so that it dies at another place each time
        child.kill()
        child.join(30)
        last = first
        try:
            while True:
                last = int.from_bytes(acknowledged.recv_bytes(), "big")
        except EOFError:
            acknowledged.close()
        leftovers += len(writing(tmp_path))
        done += check_after_a_kill(tmp_path, first, last)
    assert done >= kills
    assert leftovers > kills // 10, "too few writers died while they wrote: this run proves little"


def check_after_a_kill(folder: Path, first: int, last: int) -> int:
    """How many objects were acknowledged; all that are there are whole."""
    store = FileStore(folder)
    assert writing(folder) == []
    listed = [entry.key for entry in store.list()]
    assert [key for key in listed if not key.startswith("new/")] == ["overwritten.bin"]
    assert bytes_at(store, "overwritten.bin") in (content_of(last), content_of(last + 1))
    assert {f"new/{number}.bin" for number in range(first, last + 1)} <= set(listed)
    for key in listed:
        if key.startswith("new/"):
            assert bytes_at(store, key) == content_of(int(key[4:-4]))
    store.delete([key for key in listed if key.startswith("new/")])
    with pytest.raises(ObjectMissing):
        store.get(f"new/{first}.bin")
    store.close()
    return last - first + 1
