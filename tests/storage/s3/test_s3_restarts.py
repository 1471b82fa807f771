"""A real server that stops, in mid-upload or in between, and starts again; and one with many objects."""

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import pytest

from scripts.s3_server import S3Server, find_minio, minio_server
from storage.errors import ObjectMissing, StoreUnavailable
from storage.stores.protocol import ObjectInfo
from storage.stores.s3 import S3Store, multipart, open_s3
from storage.stores.s3.bodies import BodyReader
from tests.storage.conftest import BUCKET

LARGE = os.urandom(12 * 1024 * 1024)
ENDINGS: dict[str, Callable[[S3Server], None]] = {"SIGTERM": S3Server.stop, "kill -9": S3Server.kill}
ONE_REQUEST, PARTS = 1 << 30, 1


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[S3Server]:
    """A server of its own for each test, as it will be stopped."""
    if find_minio() is None:
        pytest.skip("moto forgets its objects when it stops; run scripts/minio.sh")
    with minio_server(tmp_path) as server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture
def roomy() -> Iterator[S3Server]:
    """A server that keeps its objects in memory where there is a file system for that: no waiting for a disk."""
    if find_minio() is None:
        pytest.skip("moto takes too long for ten thousand objects; run scripts/minio.sh")
    memory = Path("/dev/shm")  # noqa: S108
    with (
        TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
        minio_server(Path(folder)) as server,
    ):
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture
def in_mid_upload(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Calls something once, when half of a large object has been sent."""

    def arrange(interrupt: Callable[[], None]) -> None:
        plain_read = BodyReader.read
        sent = 0
        done = False

        def read(self: BodyReader, size: int = -1) -> memoryview:
            nonlocal sent, done
            piece = plain_read(self, size)
            sent += len(piece)
            if sent > len(LARGE) // 2 and not done:
                done = True
                interrupt()
            return piece

        monkeypatch.setattr(BodyReader, "read", read)

    monkeypatch.setattr(multipart, "_PART_BYTES", 5 * 1024 * 1024)
    return arrange


def opened(server: S3Server, multipart_bytes: int = ONE_REQUEST) -> S3Store:
    return open_s3(server.url(BUCKET, "state"), **server.settings(), multipart_bytes=multipart_bytes)


@pytest.mark.parametrize("way", [ONE_REQUEST, PARTS])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_that_ends_in_mid_upload_keeps_what_it_acknowledged_and_no_half_object(
    ending: str, way: int, mortal: S3Server, in_mid_upload: Callable[[Callable[[], None]], None]
) -> None:
    store = opened(mortal, way)
    small = {f"small/{number}.x": b"%d" % number for number in range(20)}
    for key, data in small.items():
        store.put(key, data)
    store.put("whole.x", LARGE)
    in_mid_upload(lambda: ENDINGS[ending](mortal))
    with pytest.raises(StoreUnavailable):
        store.put("interrupted.x", LARGE[::-1], timeout=1)
    mortal.start()
    assert {entry.key: bytes(store.get(entry.key)) for entry in store.list()} == {**small, "whole.x": LARGE}
    with pytest.raises(ObjectMissing):
        store.get("interrupted.x")
    store.close()


@pytest.mark.parametrize("way", [ONE_REQUEST, PARTS])
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_upload_continues_when_the_server_restarts(
    ending: str, way: int, mortal: S3Server, in_mid_upload: Callable[[Callable[[], None]], None]
) -> None:
    store = opened(mortal, way)
    back = Timer(0.5, mortal.start)

    def restart() -> None:
        ENDINGS[ending](mortal)
        back.start()

    in_mid_upload(restart)
    store.put("large.x", LARGE)
    back.join()
    assert bytes(store.get("large.x")) == LARGE
    store.close()


def test_a_restart_between_calls_is_not_noticed(mortal: S3Server) -> None:
    store = opened(mortal)
    store.put("a.x", b"0")
    for number, ending in enumerate(ENDINGS.values()):
        ending(mortal)
        back = Timer(0.3, mortal.start)
        back.start()
        assert bytes(store.get("a.x")) == str(number).encode()
        back.join()
        store.put("a.x", str(number + 1).encode())
    store.close()


def test_ten_thousand_small_objects_are_listed_and_deleted(roomy: S3Server) -> None:
    store = opened(roomy)
    expected = [ObjectInfo(f"snapshots/{number:05}.x", 5) for number in range(10_000)]
    for start in range(0, 10_000, 1_000):
        write_at_once(store, expected[start : start + 1_000])
    assert list(store.list()) == expected
    assert list(store.list("snapshots/012")) == expected[1200:1300]
    store.delete(entry.key for entry in expected)
    assert list(store.list()) == []
    store.close()


def write_at_once(store: S3Store, entries: list[ObjectInfo]) -> None:
    """MinIO unpacks an archive into objects: seconds for what takes a minute one by one."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for entry in entries:
            member = tarfile.TarInfo(f"state/{entry.key}")
            member.size = entry.size
            tar.addfile(member, io.BytesIO(b"12345"))
    client = store._clients.with_timeout(20)
    client.put_object(Bucket=BUCKET, Key="all.tar", Body=archive.getvalue(), Metadata={"snowball-auto-extract": "true"})
