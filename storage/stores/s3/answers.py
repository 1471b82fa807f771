"""What a failed request means: worth another attempt, or an answer that stays the same however often one asks."""

from enum import Enum
from typing import NamedTuple

import urllib3
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from storage.errors import StorageError, StoreFull, StoreRefused, StoreTimeout, StoreUnavailable


class DamagedInFlight(Exception):
    """A body arrived with the wrong length or checksum."""


# What a request can raise. botocore lets urllib3's errors through when an answer breaks off within its XML.
FAILURES = (ClientError, BotoCoreError, ResponseParserError, urllib3.exceptions.HTTPError, OSError, DamagedInFlight)


class Kind(Enum):
    """What to do about a failed request."""

    PASSING = "try again"
    SLOW = "try again, and call it a timeout in the end"
    DAMAGED = "read again, but soon believe it"
    FULL = "make space"
    REFUSED = "ask for something else"


class Failure(NamedTuple):
    """A failed request, understood."""

    kind: Kind
    status: int  # of HTTP; 0 if there was no answer
    code: str
    reason: str

    @property
    def heedable(self) -> bool:
        """Whether the status is about the object: a missing bucket is never just a missing object."""
        return self.code != "NoSuchBucket"

    def final_error(self, store: str, operation: str, key: str, attempts: int) -> StorageError:
        """What the caller gets when there is no further attempt."""
        if self.kind is Kind.FULL:
            return StoreFull(store, operation, key, self.reason, "Free or add space there; what is stored is safe.")
        if self.kind is Kind.REFUSED:
            return StoreRefused(store, operation, key, self.reason, _ADVICE.get(self.code, _OTHER_ADVICE))
        error = StoreTimeout if self.kind is Kind.SLOW else StoreUnavailable
        return error(store, operation, key, self.reason, attempts)


def understood(error: Exception) -> Failure:
    """The one place that knows S3's error codes and botocore's exceptions."""
    if isinstance(error, ClientError):
        return _from_answer(error)
    reason = str(error).rstrip(".") or type(error).__name__
    if isinstance(error, DamagedInFlight):
        return Failure(Kind.DAMAGED, 0, "", reason)
    if isinstance(error, _SLOW):
        return Failure(Kind.SLOW, 0, "", reason)
    code = type(error).__name__
    final = isinstance(error, BotoCoreError) and not isinstance(error, _PASSING)
    return Failure(Kind.REFUSED if final or _is_bad_certificate(error) else Kind.PASSING, 0, code, reason)


def _from_answer(error: ClientError) -> Failure:
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = str(error.response.get("Error", {}).get("Message", ""))[:200].rstrip(".")
    if code in _FULL or status == 507:
        kind = Kind.FULL
    elif code in _PASSING_CODES or status in _PASSING_STATUSES:
        kind = Kind.PASSING
    else:
        kind = Kind.REFUSED
    return Failure(kind, status, code, f"{status} {code}: {message}")


def _is_bad_certificate(error: Exception) -> bool:
    return isinstance(error, exceptions.SSLError) and "certificate" in str(error).lower()


_SLOW = (TimeoutError, urllib3.exceptions.TimeoutError, exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError)
# Of botocore's own errors: connections that fail, answers that are cut short, a credential server that is away.
_PASSING = (
    exceptions.ConnectionError,
    exceptions.HTTPClientError,
    exceptions.IncompleteReadError,
    exceptions.CredentialRetrievalError,
)
_PASSING_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
_PASSING_CODES = frozenset(
    {
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "RequestTimeout",
        "InternalError",
        "ServiceUnavailable",
        "OperationAborted",
        "ConditionalRequestConflict",  # two conditional writes met; one of them has won, the next attempt tells
        # The body was damaged or cut on its way there, and the server noticed.
        "IncompleteBody",
        "BadDigest",
        "XAmzContentChecksumMismatch",
        "XAmzContentSHA256Mismatch",
    }
)
_FULL = frozenset({"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "InsufficientStorage"})

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
