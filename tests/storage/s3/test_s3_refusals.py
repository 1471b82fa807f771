"""A server that says no for good: a typed error at once, with what to do, and no second try."""

import time
from collections.abc import Callable
from datetime import timedelta

import botocore.auth
import pytest

from scripts.s3_server import S3Server
from storage.errors import ObjectMissing, StorageError, StoreFull, StoreRefused, StoreTimeout, StoreUnavailable
from storage.stores.s3 import S3Store, open_s3
from tests.storage.conftest import BUCKET
from tests.storage.s3.conftest import DATA, Open
from tests.storage.s3.faulty_server import FaultyServer, answer, say, stall

OPERATIONS: dict[str, Callable[[S3Store], object]] = {
    "put": lambda store: store.put("a.x", b"1"),
    "put_if_absent": lambda store: store.put_if_absent("a.x", b"1"),
    "get": lambda store: store.get("a.x"),
    "list": lambda store: list(store.list()),
    "delete": lambda store: store.delete(["a.x"]),
}
SLACK_SECONDS = 2.0  # a busy machine


def test_a_key_that_must_not_be_deleted_is_refused(shaky: S3Store, faulty: FaultyServer) -> None:
    error = "<Error><Key>a.x</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
    faulty.fail(answer(200, f"<DeleteResult>{error}</DeleteResult>"))
    with pytest.raises(StoreRefused, match="Allow these credentials"):
        shaky.delete(["a.x"])


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("status", "code", "error", "advice"),
    [
        (403, "AccessDenied", StoreRefused, "Allow these credentials"),
        (403, "SignatureDoesNotMatch", StoreRefused, "secret key"),
        (403, "RequestTimeTooSkewed", StoreRefused, "clock"),
        (404, "NoSuchBucket", StoreRefused, "Create the bucket"),
        (507, "XMinioStorageFull", StoreFull, "space"),
        (400, "SomethingNew", StoreRefused, "documentation"),
    ],
)
def test_a_refused_request_is_not_retried(
    operation: str,
    status: int,
    code: str,
    error: type[StorageError],
    advice: str,
    shaky: S3Store,
    faulty: FaultyServer,
) -> None:
    faulty.when = lambda _: say(status, code)
    with pytest.raises(error, match=advice) as raised:
        OPERATIONS[operation](shaky)
    assert type(raised.value) is error
    assert len(faulty.seen) == 1


def test_a_full_server_harms_nothing_that_was_stored(shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.fail(say(507, "XMinioStorageFull"))
    with pytest.raises(StoreFull):
        shaky.put("a.x", b"too much")
    assert bytes(shaky.get("a.x")) == DATA


def test_a_wrong_secret_is_refused_at_once(minio: S3Server) -> None:
    with pytest.raises(StoreRefused, match=r"SignatureDoesNotMatch.*secret key"):
        open_s3(minio.url(BUCKET), access_key=minio.access_key, secret_key="wrong")  # noqa: S106


def test_an_unknown_access_key_is_refused_at_once(minio: S3Server) -> None:
    with pytest.raises(StoreRefused, match=r"InvalidAccessKeyId.*access key"):
        open_s3(minio.url(BUCKET), access_key="nobody", secret_key="wrong")  # noqa: S106


def test_a_missing_bucket_is_refused_at_once(server: S3Server) -> None:
    with pytest.raises(StoreRefused, match=r"NoSuchBucket.*Create the bucket"):
        open_s3(server.url("no-such-bucket"), **server.settings())


@pytest.mark.usefixtures("minio")
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_an_hour_off_is_refused_with_what_to_do(
    hours: int, store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = vars(botocore.auth)["get_current_datetime"]
    store.put("a.x", DATA)
    with monkeypatch.context() as wrong_clock:
        wrong_clock.setattr("botocore.auth.get_current_datetime", lambda *given: right(*given) + timedelta(hours=hours))
        with pytest.raises(StoreRefused, match=r"RequestTimeTooSkewed.*Set this machine's clock"):
            store.put("a.x", b"2")
    assert bytes(store.get("a.x")) == DATA


def test_an_endpoint_without_a_server_is_reported_within_seconds(prefix: str) -> None:
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="Check that the store is up"):
        open_s3(f"s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:1", access_key="a", secret_key="b")  # noqa: S106
    assert time.monotonic() - started < 4


def test_an_endpoint_that_never_answers_is_reported_within_seconds(opened: Open, faulty: FaultyServer) -> None:
    faulty.when = lambda _: stall
    started = time.monotonic()
    with pytest.raises(StoreTimeout):
        opened(faulty, timeout_seconds=2)
    assert time.monotonic() - started < 2 + SLACK_SECONDS


def test_a_missing_object_is_not_a_fault(shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.seen.clear()
    with pytest.raises(ObjectMissing):
        shaky.get("nothing.x")
    assert len(faulty.seen) == 1
