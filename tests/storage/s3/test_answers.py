"""What botocore's errors mean, for those that no server of the fault suite can be made to cause."""

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from storage.errors import StoreFull, StoreRefused, StoreTimeout, StoreUnavailable
from storage.stores.s3.answers import Kind, understood


def answered(status: int, code: str) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "so."}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "PutObject",
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.EndpointConnectionError(endpoint_url="http://host"), Kind.PASSING),
        (exceptions.ConnectionClosedError(endpoint_url="http://host"), Kind.PASSING),
        (exceptions.IncompleteReadError(actual_bytes=1, expected_bytes=2), Kind.PASSING),
        (exceptions.SSLError(endpoint_url="https://host", error=OSError("unexpected end")), Kind.PASSING),
        (exceptions.SSLError(endpoint_url="https://host", error=OSError("certificate verify failed")), Kind.REFUSED),
        (exceptions.ConnectTimeoutError(endpoint_url="http://host"), Kind.SLOW),
        (exceptions.ReadTimeoutError(endpoint_url="http://host"), Kind.SLOW),
        (exceptions.NoCredentialsError(), Kind.REFUSED),
        (ConnectionResetError("reset"), Kind.PASSING),
        (answered(200, "InternalError"), Kind.PASSING),
        (answered(400, "BadDigest"), Kind.PASSING),
        (answered(400, "QuotaExceeded"), Kind.FULL),
        (answered(507, ""), Kind.FULL),
        (answered(301, "PermanentRedirect"), Kind.REFUSED),
    ],
)
def test_an_error_means_to_try_again_or_not(error: Exception, kind: Kind) -> None:
    assert understood(error).kind is kind


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (answered(507, "XMinioStorageFull"), StoreFull),
        (answered(403, "AccessDenied"), StoreRefused),
        (answered(503, "SlowDown"), StoreUnavailable),
        (exceptions.ReadTimeoutError(endpoint_url="http://host"), StoreTimeout),
    ],
)
def test_an_outcome_says_what_was_wanted_and_what_to_do(error: Exception, outcome: type[Exception]) -> None:
    final = understood(error).final_error("s3://elastic/", "write", "a.x", attempts=3)
    assert type(final) is outcome
    assert "write 'a.x'" in str(final)
    assert str(final).endswith((".", "!"))
    assert ".." not in str(final)


def test_a_missing_bucket_is_not_a_missing_object() -> None:
    assert understood(answered(404, "NoSuchKey")).heedable
    assert not understood(answered(404, "NoSuchBucket")).heedable
