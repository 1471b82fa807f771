"""Who can read a store in a folder."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import storage
from elastic.results.parquet import ParquetSink
from storage.errors import FolderNotOwned
from storage.stores.file import FileStore
from tests.storage.stores.children import NOBODY

KEY = "jobs/words/operators.bin"


@pytest.fixture(autouse=True)
def lenient_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> set[tuple[str, int]]:
    return {("folder" if path.is_dir() else "file", mode(path)) for path in (folder, *folder.rglob("*"))}


def use(store: FileStore) -> None:
    store.put(KEY, b"pickled")
    store.put_if_absent("another.bin", b"")
    store.put(KEY, b"changed")
    store.close()


def test_only_the_owner_can_read_what_a_store_creates(tmp_path: Path) -> None:
    use(FileStore(tmp_path / "above" / "store"))
    assert modes(tmp_path / "above") == {("folder", 0o700), ("file", 0o600)}


@pytest.mark.parametrize("content", ["nothing", "an older store"])
def test_a_folder_for_a_store_alone_is_closed_to_others(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "store"
    folder.mkdir(0o755)
    if content == "an older store":
        use(FileStore(folder, shared=True))
        assert mode(folder) == 0o755
    FileStore(folder).close()
    assert mode(folder) == 0o700


@pytest.mark.parametrize("before", [0o755, 0o1777])
def test_a_folder_with_other_things_keeps_its_mode(tmp_path: Path, before: int) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    (folder / "letter.txt").write_text("Dear Ada")
    folder.chmod(before)
    use(FileStore(folder))
    assert mode(folder) == before
    assert modes(folder / "jobs") == {("folder", 0o700), ("file", 0o600)}


def test_the_mode_of_a_read_only_folder_is_not_widened(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o555)
    FileStore(folder).close()
    assert mode(folder) == 0o500


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path if os.geteuid() == 0 else Path("/usr")  # root may give its folder away, others have one of root's
    if folder == tmp_path:
        os.chown(folder, NOBODY, -1)
    with pytest.raises(FolderNotOwned, match=r"chown -R.*shared") as refused:
        storage.open(folder.as_uri())
    assert refused.value.owner != refused.value.user


def test_a_shared_store_leaves_access_to_the_umask(tmp_path: Path) -> None:
    os.umask(0o027)
    use(FileStore(tmp_path / "store", shared=True))
    assert modes(tmp_path / "store") == {("folder", 0o750), ("file", 0o640)}


def test_other_programs_can_read_parquet_results(tmp_path: Path) -> None:
    os.umask(0o022)
    sink = ParquetSink((tmp_path / "results").as_uri())
    sink.open("a job")
    sink.close()
    assert mode(tmp_path / "results") == 0o755
