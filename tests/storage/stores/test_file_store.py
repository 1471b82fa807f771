"""What the file store does beyond the contract: its files, its folders, its threads."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from storage.errors import InvalidStorageInput, StoreRefused, StoreTimeout
from storage.stores.file import FileStore, files
from storage.stores.file.files import create_temporary_file
from tests.storage.stores.children import writing
from tests.storage.stores.helpers import bytes_at

KEY = "a/b/c.bin"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    opened = FileStore(tmp_path)
    yield opened
    opened.close()


def test_an_object_is_a_plain_file(store: FileStore, tmp_path: Path) -> None:
    store.put(KEY, b"content")
    assert (tmp_path / KEY).read_bytes() == b"content"
    (tmp_path / "a" / "copied.bin").write_bytes(b"by hand")
    assert bytes_at(store, "a/copied.bin") == b"by hand"


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, set[str]]]:
    """Every sync of a folder: which one, and the names that were in it by then, which the sync has made durable."""
    seen: list[tuple[str, set[str]]] = []
    sync = os.fsync

    def record(descriptor: int) -> None:
        sync(descriptor)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            folder = Path(f"/proc/self/fd/{descriptor}").readlink()
            seen.append((folder.relative_to(tmp_path).as_posix(), {path.name for path in folder.iterdir()}))

    monkeypatch.setattr(os, "fsync", record)
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell which folder is synced")
@pytest.mark.parametrize("operation", ["put", "put_if_absent"])
def test_a_write_makes_the_name_of_the_object_and_of_every_new_folder_durable(
    store: FileStore, synced: list[tuple[str, set[str]]], operation: str
) -> None:
    getattr(store, operation)(KEY, b"")
    durable = {(folder, name) for folder, names in synced for name in names}
    assert durable >= {(".", "a"), ("a", "b"), ("a/b", "c.bin")}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell which folder is synced")
def test_a_deletion_is_durable_in_every_folder_that_it_touches(
    store: FileStore, synced: list[tuple[str, set[str]]]
) -> None:
    for key in (KEY, "a/b/kept.bin", "d/e.bin", "d/kept.bin"):
        store.put(key, b"")
    synced.clear()
    store.delete([KEY, "d/e.bin"])
    assert sorted(synced) == [("a/b", {"kept.bin"}), ("d", {"kept.bin"})]


def test_what_is_no_object_is_not_listed(store: FileStore, tmp_path: Path) -> None:
    store.put(KEY, b"")
    for name in ("notes", ".hidden.bin", "a/with space.bin", "a/b/.c.bin.swp", ".elastic/writing/x.bin"):
        (tmp_path / name).touch()
    (tmp_path / "a/link.bin").symlink_to(tmp_path / KEY)
    (tmp_path / "empty").mkdir()
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "folder.bin").mkdir()
    (tmp_path / "folder.bin" / "inside.bin").touch()
    assert [entry.key for entry in store.list()] == [KEY]
    assert list(store.list(".elastic")) == []


def test_ten_thousand_objects_are_listed_quickly_and_in_order(store: FileStore, tmp_path: Path) -> None:
    names = [f"{number // 1000}/{number}.bin" for number in range(10_000)]
    for folder in range(10):
        (tmp_path / str(folder)).mkdir()
    for name in names:
        os.close(os.open(tmp_path / name, os.O_CREAT | os.O_WRONLY))
    start = time.perf_counter()
    listed = [entry.key for entry in store.list()]
    assert time.perf_counter() - start < 3  # takes 0.1 s
    assert listed == sorted(names)


def test_large_objects_are_read_whole_and_in_part(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_HUGE_BYTES", 1000)
    content = os.urandom(300_000)
    store.put(KEY, content)
    data = store.get(KEY)
    assert data == content
    assert (data.readonly, data.format) == (True, "B")
    assert bytes(store.get_range(KEY, 1234, 250_000)) == content[1234:250_000]
    assert bytes(store.get_range(KEY, 1234, 1 << 62)) == content[1234:]


def test_a_folder_is_removed_with_its_last_object(store: FileStore, tmp_path: Path) -> None:
    store.put(KEY, b"")
    store.put("a/d.bin", b"")
    store.delete([KEY])
    assert not (tmp_path / "a/b").exists()
    store.delete(["a/d.bin"])
    assert [path.name for path in tmp_path.iterdir()] == [".elastic"]


def test_deleting_the_last_object_never_fails_a_writer(store: FileStore) -> None:
    enough = Event()

    def delete() -> None:
        while not enough.is_set():
            store.delete([KEY])

    with ThreadPoolExecutor(2) as threads:
        deleters = [threads.submit(delete) for _ in range(2)]
        try:
            for _ in range(40):
                store.put(KEY, b"")
        finally:
            enough.set()
        for deleter in deleters:
            deleter.result(30)


def test_opening_removes_what_dead_writers_left_and_spares_the_living(tmp_path: Path) -> None:
    FileStore(tmp_path).put(KEY, b"")
    folder = tmp_path / ".elastic" / "writing"
    (folder / "dead").write_bytes(b"half-writ")
    with create_temporary_file(folder) as living:
        FileStore(tmp_path).close()
        assert writing(tmp_path) == [living.path]
    assert writing(tmp_path) == []


def test_opening_never_fails_a_writer(store: FileStore, tmp_path: Path) -> None:
    enough = Event()

    def reopen() -> None:
        while not enough.is_set():
            FileStore(tmp_path).close()

    with ThreadPoolExecutor(2) as threads:
        openers = [threads.submit(reopen) for _ in range(2)]
        try:
            for number in range(60):
                store.put(KEY, str(number).encode())
                assert bytes_at(store, KEY) == str(number).encode()
        finally:
            enough.set()
        for opener in openers:
            opener.result(30)


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[str]:
    """The key of an object that cannot be opened until the test is over: a pipe without a writer."""
    pipe = tmp_path / "hanging.bin"
    os.mkfifo(pipe)
    yield pipe.name
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def test_a_hanging_call_times_out_and_others_continue(store: FileStore, hanging: str) -> None:
    start = time.perf_counter()
    for _ in range(3):
        with pytest.raises(StoreTimeout, match=r"within 0\.05 s") as late:
            store.get(hanging, timeout=0.05)
    assert 0.15 <= time.perf_counter() - start < 5
    assert (late.value.key, late.value.operation, late.value.store) == (hanging, "get", store.url)
    store.put(KEY, b"on")
    assert bytes_at(store, KEY) == b"on"


def test_the_stores_own_timeout_is_used_when_none_is_given(tmp_path: Path, hanging: str) -> None:
    store = FileStore(tmp_path, timeout_seconds=0.05)
    with pytest.raises(StoreTimeout):
        store.get(hanging)
    store.close()


def test_a_write_that_timed_out_does_not_happen_later(
    store: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(KEY, b"before")
    disk_answers = Event()
    sync = os.fsync

    def hang(descriptor: int) -> None:
        disk_answers.wait(30)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", hang)
    with pytest.raises(StoreTimeout):
        store.put(KEY, b"too late", timeout=0.1)
    with pytest.raises(StoreTimeout):
        store.put_if_absent("new.bin", b"too late", timeout=0.1)
    assert len(writing(tmp_path)) == 2
    disk_answers.set()
    while writing(tmp_path):  # until the threads have given up
        time.sleep(0.01)
    assert [(entry.key, bytes_at(store, entry.key)) for entry in store.list()] == [(KEY, b"before")]


def test_a_deletion_that_timed_out_deletes_no_further_objects_later(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ["first.bin", "second.bin"]
    for key in keys:
        store.put(key, b"")
    file_system_answers, done = Event(), Event()
    unlink = Path.unlink

    def hang(path: Path, missing_ok: bool = False) -> None:
        file_system_answers.wait(30)
        unlink(path, missing_ok)
        done.set()

    monkeypatch.setattr(Path, "unlink", hang)
    with pytest.raises(StoreTimeout):
        store.delete(keys, timeout=0.1)
    file_system_answers.set()
    assert done.wait(30)
    store.close()
    assert [entry.key for entry in FileStore(Path(store.url.removeprefix("file://"))).list()] == ["second.bin"]


def run(program: str) -> str:
    imports = "import os, sys, threading; from pathlib import Path; from storage.stores.file import FileStore; "
    command = [sys.executable, "-W", "ignore", "-c", imports + program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout  # noqa: S603


def test_a_hanging_call_does_not_keep_the_interpreter_from_ending(tmp_path: Path, hanging: str) -> None:
    program = (
        f"store = FileStore(Path({str(tmp_path)!r}))\n"
        f"try: store.get({hanging!r}, timeout=0.05)\n"
        "except Exception as error: print(type(error).__name__)"
    )
    assert run(program) == "StoreTimeout\n"


def test_a_forked_child_can_use_its_parents_store(tmp_path: Path) -> None:
    program = (
        f"store = FileStore(Path({str(tmp_path)!r})); store.put('parent.bin', b''); child = os.fork()\n"
        "if child == 0: store.put('child.bin', b'', timeout=5); os._exit(0)\n"
        "print(os.waitpid(child, 0)[1], [entry.key for entry in store.list()])"
    )
    assert run(program) == "0 ['child.bin', 'parent.bin']\n"


def test_a_closed_store_refuses_calls_and_ends_its_threads(tmp_path: Path) -> None:
    program = (
        f"store = FileStore(Path({str(tmp_path)!r})); store.put('a.bin', b''); threads = threading.enumerate()[1:]; "
        "store.close(); [thread.join(5) for thread in threads]; print(len(threads), threading.active_count())"
    )
    assert run(program) == "1 1\n"
    store = FileStore(tmp_path)
    store.close()
    with pytest.raises(StoreRefused, match=r"was closed\. Open the store again"):
        store.get("a.bin")


def test_a_list_of_bad_and_good_keys_deletes_nothing(store: FileStore) -> None:
    store.put(KEY, b"")
    with pytest.raises(InvalidStorageInput):
        store.delete([KEY, "../escape.bin"])
    assert [entry.key for entry in store.list()] == [KEY]
