"""What botocore's errors mean, for those that no server of the fault suite can be made to cause."""

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from storage.errors import StoreFull, StoreRefused, StoreTimeout, StoreUnavailable
from storage.stores.s3.failures import FailureKind, classify


def answered(status: int, code: str) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "so."}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "PutObject",
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.EndpointConnectionError(endpoint_url="http://host"), FailureKind.TRANSIENT),
        (exceptions.ConnectionClosedError(endpoint_url="http://host"), FailureKind.TRANSIENT),
        (exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2), FailureKind.TRANSIENT),
        (exceptions.SSLError(endpoint_url="https://host", error=OSError("unexpected end")), FailureKind.TRANSIENT),
        (
            exceptions.SSLError(endpoint_url="https://host", error=OSError("certificate verify failed")),
            FailureKind.REFUSED,
        ),
        (exceptions.ConnectTimeoutError(endpoint_url="http://host"), FailureKind.TIMEOUT),
        (exceptions.ReadTimeoutError(endpoint_url="http://host"), FailureKind.TIMEOUT),
        (exceptions.NoCredentialsError(), FailureKind.REFUSED),
        (ConnectionResetError("reset"), FailureKind.TRANSIENT),
        (answered(200, "InternalError"), FailureKind.TRANSIENT),
        (answered(400, "BadDigest"), FailureKind.TRANSIENT),
        (answered(400, "QuotaExceeded"), FailureKind.FULL),
        (answered(507, ""), FailureKind.FULL),
        (answered(301, "PermanentRedirect"), FailureKind.REFUSED),
    ],
)
def test_an_error_is_retried_or_not(error: Exception, kind: FailureKind) -> None:
    assert classify(error).kind is kind


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (answered(507, "XMinioStorageFull"), StoreFull),
        (answered(403, "AccessDenied"), StoreRefused),
        (answered(503, "SlowDown"), StoreUnavailable),
        (exceptions.ReadTimeoutError(endpoint_url="http://host"), StoreTimeout),
    ],
)
def test_an_error_names_the_call_and_what_to_do(error: Exception, outcome: type[Exception]) -> None:
    final = classify(error).to_storage_error("s3://elastic/", "write", "a.x", attempts=3)
    assert type(final) is outcome
    assert "write 'a.x'" in str(final)
    assert str(final).endswith((".", "!"))
    assert ".." not in str(final)


def test_a_missing_bucket_is_not_a_missing_object() -> None:
    assert classify(answered(404, "NoSuchKey")).is_about_object
    assert not classify(answered(404, "NoSuchBucket")).is_about_object
