"""Every store behind one fixture, and the S3 servers behind two of them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

import storage.stores
from scripts.s3_server import S3Server, find_minio, minio_server, moto_server
from storage.stores import Store

BUCKET = "contract"
_NO_MINIO = "MinIO is not built; `make minio` builds it"
_servers = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def minio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One real MinIO for the whole run, with an empty bucket; its tests are skipped where it is not built."""
    if find_minio() is None:
        pytest.skip(_NO_MINIO)
    with minio_server(tmp_path_factory.mktemp("minio")) as server:
        _note(request.config, "real MinIO")
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def moto(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    """One moto server for the whole run, with an empty bucket."""
    with moto_server() as server:
        _note(request.config, "moto")
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def minio_store(minio: S3Server) -> Iterator[Store]:
    """Opened once: opening tries the server out, which takes longer than most tests."""
    with closing(_opened(minio)) as store:
        yield store


@pytest.fixture(scope="session")
def moto_store(moto: S3Server) -> Iterator[Store]:
    with closing(_opened(moto)) as store:
        yield store


@pytest.fixture(params=["memory", "file", "minio", "moto"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which store the test runs on."""
    return str(request.param)


@pytest.fixture
def store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of that kind; leave it open."""
    if kind in ("minio", "moto"):
        shared: Store = request.getfixturevalue(f"{kind}_store")
        shared.delete([entry.key for entry in shared.list()])
        yield shared
    else:
        url = "memory:" if kind == "memory" else (tmp_path / "store").as_uri()
        with closing(storage.stores.open(url)) as store:
            yield store


@pytest.fixture
def store_to_close(kind: str, request: pytest.FixtureRequest, store: Store) -> Store:
    """A store of that kind that the test may close."""
    return _opened(request.getfixturevalue(kind)) if kind in ("minio", "moto") else store


def _opened(server: S3Server) -> Store:
    return storage.stores.open(server.url(BUCKET, f"test-{uuid4().hex}"), **server.settings())


def _note(config: pytest.Config, server: str) -> None:
    config.stash.setdefault(_servers, []).append(server)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what the S3 tests have proved: moto is no judge of races and checksums."""
    if servers := config.stash.get(_servers, []):
        without = "" if find_minio() else f" ({_NO_MINIO})"
        terminalreporter.write_line(f"S3 tests ran against: {', '.join(sorted(servers, reverse=True))}{without}")
