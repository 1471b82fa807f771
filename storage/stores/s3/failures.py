"""Classification of failed requests: worth a retry, or final."""

from enum import Enum
from typing import NamedTuple

import urllib3
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from storage.errors import StorageError, StoreFull, StoreRefused, StoreTimeout, StoreUnavailable


class DamagedInTransit(Exception):
    """A body arrived with the wrong length or checksum."""


# All that a request can raise. botocore lets urllib3's errors through when an answer breaks off within its XML.
REQUEST_ERRORS = (
    ClientError,
    BotoCoreError,
    ResponseParserError,
    urllib3.exceptions.HTTPError,
    OSError,
    DamagedInTransit,
)


class FailureKind(Enum):
    """What to do about a failed request."""

    TRANSIENT = "try again"
    TIMEOUT = "try again, and report a timeout in the end"
    DAMAGED = "read again, but only a few times"
    FULL = "make space"
    REFUSED = "ask for something else"


class Failure(NamedTuple):
    """A failed request and what to do about it."""

    kind: FailureKind
    status: int  # of HTTP; 0 if there was no answer
    code: str
    reason: str

    @property
    def is_about_object(self) -> bool:
        """Whether the status is about the object: a missing bucket is never just a missing object."""
        return self.code != "NoSuchBucket"

    def to_storage_error(self, store: str, operation: str, key: str, attempts: int) -> StorageError:
        """Return the error to raise when there is no further attempt."""
        if self.kind is FailureKind.FULL:
            return StoreFull(store, operation, key, self.reason, "Free or add space there; what is stored is safe.")
        if self.kind is FailureKind.REFUSED:
            return StoreRefused(store, operation, key, self.reason, _ADVICE.get(self.code, _OTHER_ADVICE))
        error = StoreTimeout if self.kind is FailureKind.TIMEOUT else StoreUnavailable
        return error(store, operation, key, self.reason, attempts)


def classify(error: Exception) -> Failure:
    """Return what an error means: the one place that knows S3's error codes and botocore's exceptions."""
    if isinstance(error, ClientError):
        return _classify_answer(error)
    reason = str(error).rstrip(".") or type(error).__name__
    if isinstance(error, DamagedInTransit):
        return Failure(FailureKind.DAMAGED, 0, "", reason)
    if isinstance(error, _TIMEOUTS):
        return Failure(FailureKind.TIMEOUT, 0, "", reason)
    code = type(error).__name__
    is_final = isinstance(error, BotoCoreError) and not isinstance(error, _TRANSIENT)
    kind = FailureKind.REFUSED if is_final or _is_bad_certificate(error) else FailureKind.TRANSIENT
    return Failure(kind, 0, code, reason)


def _classify_answer(error: ClientError) -> Failure:
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = str(error.response.get("Error", {}).get("Message", ""))[:200].rstrip(".")
    if code in _FULL_CODES or status == 507:
        kind = FailureKind.FULL
    elif code in _TRANSIENT_CODES or status in _TRANSIENT_STATUSES:
        kind = FailureKind.TRANSIENT
    else:
        kind = FailureKind.REFUSED
    return Failure(kind, status, code, f"{status} {code}: {message}")


def _is_bad_certificate(error: Exception) -> bool:
    return isinstance(error, exceptions.SSLError) and "certificate" in str(error).lower()


_TIMEOUTS = (TimeoutError, urllib3.exceptions.TimeoutError, exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError)
# Of botocore's own errors: connections that fail, truncated answers, a credential server that does not answer.
_TRANSIENT = (
    exceptions.ConnectionError,
    exceptions.HTTPClientError,
    exceptions.IncompleteReadError,
    exceptions.CredentialRetrievalError,
)
_TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_TRANSIENT_CODES = frozenset(
    {
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "RequestTimeout",
        "InternalError",
        "ServiceUnavailable",
        "OperationAborted",
        "ConditionalRequestConflict",  # two conditional writes met and one has won: the next attempt shows which
        # The body arrived damaged or truncated, and the server noticed.
        "IncompleteBody",
        "BadDigest",
        "XAmzContentChecksumMismatch",
        "XAmzContentSHA256Mismatch",
    }
)
_FULL_CODES = frozenset({"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "InsufficientStorage"})

_KEYS_ADVICE = "Check the access key and the secret key."
_ADVICE = {
    "NoSuchBucket": "Create the bucket, or correct the URL.",
    "AccessDenied": "Allow these credentials to get, put, list and delete under this prefix.",
    "403": "Allow these credentials to get, put, list and delete under this prefix.",
    "InvalidAccessKeyId": _KEYS_ADVICE,
    "SignatureDoesNotMatch": _KEYS_ADVICE,
    "ExpiredToken": "Renew the temporary credentials.",
    "RequestTimeTooSkewed": "Set this machine's clock (or the server's): they differ by more than 15 minutes.",
    "AuthorizationHeaderMalformed": "Name the bucket's region: region=... in the URL or the settings.",
    "PermanentRedirect": "Name the bucket's region: region=... in the URL or the settings.",
    "EntityTooLarge": "Write a smaller object.",
    "NoCredentialsError": "Give access_key and secret_key, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    "PartialCredentialsError": "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    "SSLError": "Name the authority that signed the server's certificate: AWS_CA_BUNDLE.",
}
_OTHER_ADVICE = "Look the code up in the server's documentation."
