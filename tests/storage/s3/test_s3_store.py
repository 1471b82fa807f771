"""What is special about objects in S3; what all stores promise is in the contract suite."""

import logging
import os
import traceback
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scripts.s3_server import S3Server
from storage.errors import InvalidStorageInput, StorageError, StoreRefused
from storage.stores.protocol import ObjectInfo, Store
from storage.stores.s3 import S3Store, multipart, open_s3
from tests.storage.conftest import BUCKET
from tests.storage.s3.conftest import Open
from tests.storage.s3.faulty_server import FaultyServer, answer, say

SIX_MEGABYTES = os.urandom(6 * 1024 * 1024)


def test_an_s3_store_is_a_store(store: S3Store) -> None:
    assert isinstance(store, Store)


def test_a_store_prints_as_its_url_which_opens_it_again(store: S3Store, server: S3Server) -> None:
    store.put("a/b.x", b"1")
    assert repr(store) == f"<S3Store {store.url}>"
    again = open_s3(store.url, **server.settings())
    assert bytes(again.get("a/b.x")) == b"1"
    again.close()


def test_keys_of_one_prefix_are_not_seen_under_another(opened: Open, server: S3Server, prefix: str) -> None:
    opened().put("a.x", b"1")
    longer = open_s3(server.url(BUCKET, prefix + "0"), **server.settings())
    assert list(longer.list()) == []
    longer.close()


def test_a_large_object_is_written_in_parts_and_read_whole(
    opened: Open, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "_PART_BYTES", 5 * 1024 * 1024)
    store = opened(faulty, multipart_bytes=len(SIX_MEGABYTES))
    store.put("large.x", SIX_MEGABYTES)
    assert sum("partNumber=" in request.path for request in faulty.seen) == 2
    assert bytes(store.get("large.x")) == SIX_MEGABYTES
    assert bytes(store.get_range("large.x", 5_242_870, 5_242_890)) == SIX_MEGABYTES[5_242_870:5_242_890]


def test_an_object_below_the_threshold_is_written_in_one_request(opened: Open, faulty: FaultyServer) -> None:
    store = opened(faulty, multipart_bytes=len(SIX_MEGABYTES) + 1)
    faulty.seen.clear()
    store.put("large.x", SIX_MEGABYTES)
    assert [request.method for request in faulty.seen] == ["PUT"]


def test_parts_that_fail_for_good_are_aborted(
    opened: Open, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "_PART_BYTES", 5 * 1024 * 1024)
    store = opened(faulty, multipart_bytes=1)
    faulty.when = lambda request: say(403, "AccessDenied") if "partNumber=2" in request.path else None
    with pytest.raises(StoreRefused):
        store.put("large.x", SIX_MEGABYTES)
    assert faulty.seen[-1].method == "DELETE"
    assert "uploadId=" in faulty.seen[-1].path
    assert list(store.list()) == []


def test_uploads_of_killed_writers_are_aborted_when_they_are_old_enough(
    opened: Open, faulty: FaultyServer, prefix: str
) -> None:
    store = opened(faulty)
    now = datetime.now(UTC)
    listing = "".join(
        f"<Upload><Key>{prefix}/a/{name}.x</Key><UploadId>{name}</UploadId><Initiated>{at.isoformat()}</Initiated></Upload>"
        for name, at in {"old": now - timedelta(hours=25), "young": now - timedelta(hours=23)}.items()
    )
    faulty.fail(answer(200, f"<ListMultipartUploadsResult>{listing}</ListMultipartUploadsResult>"))
    faulty.seen.clear()
    assert store.abort_leftovers() == 1
    asked, aborted = faulty.seen
    assert f"prefix={prefix}%2F" in asked.path
    assert (aborted.method, aborted.path) == ("DELETE", f"/{BUCKET}/{prefix}/a/old.x?uploadId=old")


def test_opening_aborts_what_killed_writers_have_left(opened: Open, moto: S3Server, prefix: str) -> None:
    client = opened(moto)._clients.with_timeout(20)
    client.create_multipart_upload(Bucket=BUCKET, Key=f"{prefix}/a.x")
    client.create_multipart_upload(Bucket=BUCKET, Key=f"other-{prefix}/a.x")
    opened(moto)  # moto dates all uploads back to 2010
    left = client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert [upload["Key"] for upload in left] == [f"other-{prefix}/a.x"]


def test_an_empty_range_only_asks_whether_the_object_exists(opened: Open, faulty: FaultyServer) -> None:
    store = opened(faulty)
    store.put("a.x", b"0123456789")
    faulty.seen.clear()
    assert bytes(store.get_range("a.x", 7, 7)) == b""
    assert [request.method for request in faulty.seen] == ["HEAD"]


def test_a_server_that_ignores_ranges_does_not_matter(opened: Open, moto: S3Server) -> None:
    with FaultyServer(moto.endpoint, strip=frozenset({"range"})).running() as all_or_nothing:
        store = opened(all_or_nothing)
        store.put("a.x", b"0123456789")
        assert bytes(store.get_range("a.x", 2, 5)) == b"234"
        assert bytes(store.get_range("a.x", 8, 20)) == b"89"


def test_a_listing_shows_objects_only(store: S3Store, prefix: str) -> None:
    store.put("a/b.x", b"1")
    client = store._clients.with_timeout(20)
    client.put_object(Bucket=BUCKET, Key=f"{prefix}/.probe-of-a-killed-opening", Body=b"1")
    client.put_object(Bucket=BUCKET, Key=f"{prefix}/folder-made-in-a-console/", Body=b"")
    assert list(store.list()) == [ObjectInfo("a/b.x", 1)]


def test_a_writer_sends_a_checksum_that_the_server_checks(
    minio: S3Server, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(minio)
    monkeypatch.setattr("storage.stores.s3.bucket.format_checksum", lambda _: "AAAAAA==")
    with pytest.raises(StorageError, match="XAmzContentChecksumMismatch"):
        store.put("a.x", b"these bytes have another checksum", timeout=1)
    assert list(store.list()) == []


@pytest.mark.parametrize("settings", [{"access_key": None}, {"secret_key": None}, {"attempts": 0}])
def test_settings_that_cannot_work_are_refused(opened: Open, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidStorageInput):
        opened(**settings)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_that_leaves_no_time_is_refused(store: S3Store, timeout: float) -> None:
    with pytest.raises(InvalidStorageInput):
        store.put("a.x", b"1", timeout=timeout)


def test_credentials_may_come_from_the_environment(
    server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.settings()["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.settings()["secret_key"])
    store = open_s3(server.url(BUCKET, prefix))
    store.put("a.x", b"1")
    assert bytes(store.get("a.x")) == b"1"
    store.close()


def test_missing_credentials_are_named(server: S3Server) -> None:
    with pytest.raises(StoreRefused, match="AWS_ACCESS_KEY_ID"):
        open_s3(server.url(BUCKET))


def test_no_log_line_repr_or_exception_holds_the_secret(
    minio: S3Server, faulty: FaultyServer, opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)  # of botocore and urllib3, too
    secret = "a-very-distinctive-secret"  # noqa: S105
    messages: list[str] = []

    def fails(*arguments: Any, **settings: Any) -> None:
        with pytest.raises(StorageError) as error:
            opened(*arguments, **settings)
        messages.extend((repr(error.value), *traceback.format_exception(error.value)))

    fails(minio, secret_key=secret)
    fails(minio, access_key="nobody", secret_key=secret)
    faulty.fail(say(500, "InternalError"), times=4)
    fails(faulty, secret_key=secret)
    fails(S3Server("none", [], 1, "", minio._log), secret_key=secret)
    store = opened(faulty)
    messages.extend((repr(store), store.url, repr(vars(store)), repr(minio)))
    messages.extend(record.getMessage() for record in caplog.records)
    assert "SignatureDoesNotMatch" in "".join(messages)
    assert secret not in "".join(messages)
    assert minio.settings()["secret_key"] not in "".join(messages)
