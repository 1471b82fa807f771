"""Every way a server can fail: a silent successful retry or a typed error in time, and nothing acknowledged is lost."""

import logging
import time
from collections.abc import Callable

import pytest

from storage.errors import (
    DamagedObject,
    StorageError,
    StoreTimeout,
    StoreUnavailable,
)
from storage.stores.protocol import ObjectInfo
from storage.stores.s3 import S3Store, retries
from tests.storage.s3.conftest import DATA, Open
from tests.storage.s3.faulty_server import (
    Fault,
    FaultyServer,
    answer,
    flip_a_bit,
    hang_up,
    lose_answer,
    say,
    stall,
    trickle,
    truncate,
)

SLACK_SECONDS = 2.0  # a busy machine

PASSING: dict[str, Fault] = {
    "500": say(500, "InternalError"),
    "502 without XML": answer(502, "Bad Gateway"),
    "503": say(503, "ServiceUnavailable"),
    "503 slow down": say(503, "SlowDown"),
    "504": say(504, "GatewayTimeout"),
    "400 request timeout": say(400, "RequestTimeout"),
    "429": say(429, "TooManyRequests"),
    "hang up": hang_up,
    "lost answer": lose_answer,
}
BROKEN_ANSWERS: dict[str, Fault] = {"truncated": truncate, "flipped bit": flip_a_bit}

OPERATIONS: dict[str, Callable[[S3Store], object]] = {
    "put": lambda store: store.put("new.x", DATA, timeout=6),
    "put_if_absent": lambda store: store.put_if_absent("new.x", DATA, timeout=6),
    "get": lambda store: store.get("a.x", timeout=6),
    "get_range": lambda store: store.get_range("a.x", 5, 10, timeout=6),
    "list": lambda store: list(store.list(timeout=6)),
    "delete": lambda store: store.delete(["a.x"], timeout=6),
}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_FIRST_PAUSE_SECONDS", 0.02)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", PASSING)
def test_a_transient_fault_is_retried_silently(
    fault: str, operation: str, shaky: S3Store, faulty: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    faulty.fail(PASSING[fault], times=2)
    OPERATIONS[operation](shaky)
    assert faulty.faults_left == 0
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []
    contents = {entry.key: bytes(shaky.get(entry.key)) for entry in shaky.list()}
    written = {"put": {"new.x": DATA}, "put_if_absent": {"new.x": DATA}}
    assert contents == ({} if operation == "delete" else {"a.x": DATA, **written.get(operation, {})})


@pytest.mark.parametrize("operation", ["put", "get"])
def test_a_transient_silence_is_retried_silently(operation: str, shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.fail(stall)
    OPERATIONS[operation](shaky)
    assert faulty.faults_left == 0


@pytest.mark.parametrize("fault", BROKEN_ANSWERS)
def test_an_object_that_arrives_damaged_is_read_again(fault: str, shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.fail(BROKEN_ANSWERS[fault], times=2)
    assert bytes(shaky.get("a.x")) == DATA
    assert faulty.faults_left == 0


def test_a_listing_that_breaks_off_is_read_again(shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.fail(truncate)
    assert list(shaky.list()) == [ObjectInfo("a.x", len(DATA))]
    assert faulty.faults_left == 0


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (say(500, "InternalError"), StoreUnavailable),
        (say(503, "SlowDown"), StoreUnavailable),
        (hang_up, StoreUnavailable),
        (truncate, StoreUnavailable),
        (flip_a_bit, DamagedObject),
        (stall, StoreTimeout),
        (trickle, StoreTimeout),
    ],
)
def test_a_lasting_fault_is_a_typed_error_within_the_deadline(
    fault: Fault, error: type[StorageError], shaky: S3Store, faulty: FaultyServer
) -> None:
    faulty.when = lambda _: fault
    started = time.monotonic()
    with pytest.raises(error) as raised:
        shaky.get("a.x", timeout=1.5)
    assert time.monotonic() - started < 1.5 + SLACK_SECONDS
    if isinstance(raised.value, StoreUnavailable):
        assert raised.value.attempts >= (1 if fault is trickle else 2)


def test_a_lasting_fault_ends_after_the_allowed_attempts(opened: Open, faulty: FaultyServer) -> None:
    store = opened(faulty, attempts=3)
    faulty.when = lambda _: say(503, "SlowDown")
    faulty.seen.clear()
    with pytest.raises(StoreUnavailable, match="tried 3 times: 503 SlowDown") as error:
        store.put("a.x", DATA)
    assert error.value.attempts == len(faulty.seen) == 3


def test_a_stalled_upload_ends_at_the_deadline(shaky: S3Store, faulty: FaultyServer) -> None:
    faulty.when = lambda _: stall
    started = time.monotonic()
    with pytest.raises(StoreTimeout):
        shaky.put("new.x", DATA, timeout=1)
    assert time.monotonic() - started < 1 + SLACK_SECONDS


@pytest.mark.parametrize("code", ["SlowDown", "InternalError"])
def test_a_key_that_could_not_be_deleted_is_deleted_again(code: str, shaky: S3Store, faulty: FaultyServer) -> None:
    error = f"<Error><Key>a.x</Key><Code>{code}</Code><Message>later</Message></Error>"
    faulty.fail(answer(200, f"<DeleteResult>{error}</DeleteResult>"))
    shaky.delete(["a.x"])
    assert list(shaky.list()) == []
