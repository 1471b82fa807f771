"""Servers and stores of the S3 tests: real MinIO where it is built, else moto."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from itertools import count
from typing import Any

import botocore.session
import pytest

from scripts.s3_server import S3Server, find_minio
from storage.stores.s3 import S3Store, open_s3
from tests.storage.conftest import BUCKET
from tests.storage.s3.faulty_server import FaultyServer

DATA = bytes(range(256)) * 40  # of the object in a shaky store
Open = Callable[..., S3Store]
_numbers = count(1)


@pytest.fixture(autouse=True)
def _only_given_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Neither this machine's AWS settings nor a cloud's metadata server have a say in these tests."""
    nowhere = str(tmp_path_factory.getbasetemp() / "no-such-file")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", nowhere)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> S3Server:
    """The most real server there is."""
    running: S3Server = request.getfixturevalue("minio" if find_minio() else "moto")
    return running


@pytest.fixture(scope="session", autouse=True)
def _one_description_of_s3() -> Iterator[None]:
    """boto3 parses a megabyte of it for every store, which would take longer than all else in these tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("botocore.session.create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(scope="session")
def _behind_faults(server: S3Server) -> Iterator[tuple[FaultyServer, S3Store]]:
    """Opened once: opening takes longer than most tests."""
    with (
        FaultyServer(server.endpoint).running() as faulty,
        closing(open_s3(faulty.url(BUCKET, "behind-faults"), **server.settings())) as store,
    ):
        yield faulty, store


@pytest.fixture
def faulty(_behind_faults: tuple[FaultyServer, S3Store]) -> FaultyServer:
    """A server that works until a test makes it fail."""
    faulty, _ = _behind_faults
    faulty.behave()
    return faulty


@pytest.fixture
def shaky(_behind_faults: tuple[FaultyServer, S3Store], faulty: FaultyServer) -> S3Store:
    """A store behind the faulty server, with one object in it, `a.x`."""
    _, store = _behind_faults
    store.delete([entry.key for entry in store.list()])
    store.put("a.x", DATA)
    faulty.seen.clear()
    return store


@pytest.fixture
def prefix() -> str:
    """A place that no other test has seen."""
    return f"place-{next(_numbers)}"


@pytest.fixture
def opened(server: S3Server, prefix: str) -> Iterator[Open]:
    """Opens stores under this test's prefix, and closes them in the end."""
    with ExitStack() as stores:

        def open_store(at: S3Server | FaultyServer = server, **settings: Any) -> S3Store:
            store = open_s3(at.url(BUCKET, prefix), **{**server.settings(), **settings})
            stores.callback(store.close)
            return store

        yield open_store


@pytest.fixture
def store(opened: Open) -> S3Store:
    return opened()
