"""What opening finds out about a server, and what a store does without conditional writes."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts.s3_server import S3Server
from storage.errors import AlreadyExists, StoreRefused
from storage.stores.s3 import S3Store
from tests.storage.conftest import BUCKET
from tests.storage.s3.conftest import Open
from tests.storage.s3.faulty_server import FaultyServer, Request, say

CONDITIONS = frozenset({"if-none-match"})


@pytest.fixture
def careless(moto: S3Server) -> Iterator[FaultyServer]:
    """A server that lets every writer win."""
    with FaultyServer(moto.endpoint, strip=CONDITIONS).running() as running:
        yield running


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.name for record in found} <= {"storage"}
    return [record.getMessage() for record in found]


def test_a_server_that_honours_conditions_gets_no_warning(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    assert opened().conditional
    assert warnings_of(caplog) == []


def test_a_server_that_ignores_conditions_gets_one_warning(
    opened: Open, careless: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(careless)
    assert not store.conditional
    store.put_if_absent("a.x", b"1")
    (warning,) = warnings_of(caplog)
    assert "Run only one driver" in warning


def test_a_server_that_does_not_implement_conditions_is_written_to_without_them(
    opened: Open, faulty: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.when = lambda request: say(501, "NotImplemented") if has_condition(request) else None
    store = opened(faulty)
    assert not store.conditional
    store.put_if_absent("a.x", b"1")
    assert bytes(store.get("a.x")) == b"1"
    assert len(warnings_of(caplog)) == 1


def has_condition(request: Request) -> bool:
    return any(name.lower() in CONDITIONS for name in request.headers)


def test_a_probe_leaves_nothing_behind(store: S3Store, prefix: str) -> None:
    client = store._clients.with_timeout(20)
    assert client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)["KeyCount"] == 0


def test_a_server_that_refuses_checksums_is_written_to_without_them(
    opened: Open, faulty: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse_checksums(request: Request) -> bool:
        return request.method == "PUT" and "x-amz-checksum-crc32" in request.headers

    faulty.when = lambda request: say(400, "InvalidRequest") if refuse_checksums(request) else None
    store = opened(faulty, multipart_bytes=10)
    store.put("small.x", b"1")
    store.put("large.x", b"0123456789")
    assert [bytes(store.get(key)) for key in ("small.x", "large.x")] == [b"1", b"0123456789"]
    assert store.conditional
    (warning,) = warnings_of(caplog)
    assert "refuses checksums" in warning


def test_without_conditions_an_object_that_exists_is_still_not_overwritten(
    opened: Open, careless: FaultyServer
) -> None:
    store = opened(careless)
    store.put_if_absent("a.x", b"first")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a.x", b"second")
    assert bytes(store.get("a.x")) == b"first"


def test_without_conditions_the_threads_of_one_process_still_have_one_winner(
    opened: Open, careless: FaultyServer
) -> None:
    stores = [opened(careless) for _ in range(4)]

    def won(writer: int) -> bool:
        try:
            stores[writer].put_if_absent("a.x", b"%d" % writer)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        winners = [writer for writer, first in enumerate(threads.map(won, range(4))) if first]
    assert [b"%d" % winner for winner in winners] == [bytes(stores[0].get("a.x"))]


def test_a_server_that_refuses_the_first_write_for_another_reason_is_not_opened(
    opened: Open, faulty: FaultyServer
) -> None:
    faulty.when = lambda request: say(400, "InvalidRequest") if request.method == "PUT" else None
    with pytest.raises(StoreRefused, match="InvalidRequest"):
        opened(faulty)
