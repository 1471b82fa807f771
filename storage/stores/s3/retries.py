"""Retries of requests: bounded attempts, growing pauses, one deadline for all."""

import logging
import random
from collections.abc import Callable, Collection
from time import sleep
from typing import TYPE_CHECKING, TypeVar

from storage.errors import DamagedObject, StorageError
from storage.stores.arguments import Deadline
from storage.stores.s3.clients import Clients
from storage.stores.s3.failures import REQUEST_ERRORS, Failure, FailureKind, classify

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_FIRST_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 5.0
_MAX_DAMAGED_READS = 3  # a bit that flips three times in a row is flipped in the store
_CONNECTIONS_PER_CALL = 3  # a connection may be silent for a third of the time left, then another one is tried

_log = logging.getLogger("storage")
_jitter = random.SystemRandom()
Answer = TypeVar("Answer")


class ExpectedStatus(Exception):
    """The server answered with a status that the caller expects: missing, exists, past the end."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class RequestRetrier:
    """Sends requests, and is the only place that retries them.

    It retries after a random pause of up to 0.1, 0.2, 0.4 ... 5 s (full jitter, so that many nodes do not retry in
    step): connections that fail, time out or break, 408, 429, 500, 502, 503, 504, throttling, and bodies that arrive
    damaged. It retries nothing else (see `failures`). Callers do not notice a server that restarts within seconds.
    """

    def __init__(self, store: str, clients: Clients, attempts: int) -> None:
        self.store = store
        self._clients = clients
        self._attempts = attempts

    def send(
        self,
        operation: str,
        key: str,
        deadline: Deadline,
        request: Callable[["S3Client"], Answer],
        expected: Collection[int] = (),
    ) -> Answer:
        """Return what `request` returns; `ExpectedStatus` if the answer has an HTTP status in `expected`."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return request(self._clients.with_timeout(deadline.seconds_left / _CONNECTIONS_PER_CALL))
            except REQUEST_ERRORS as error:
                failure = classify(error)
                if failure.status in expected and failure.is_about_object:
                    raise ExpectedStatus(failure) from error
                pause = _jitter.uniform(0, min(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), _MAX_PAUSE_SECONDS))
                if not self._is_retryable(failure, attempt) or deadline.seconds_left <= pause:
                    raise self._final_error(failure, operation, key, attempt, deadline) from error
                _log.debug("%s: attempt %d to %s %s failed: %s", self.store, attempt, operation, key, failure.reason)
            sleep(pause)

    def _is_retryable(self, failure: Failure, attempt: int) -> bool:
        if failure.kind is FailureKind.DAMAGED:
            return attempt < min(self._attempts, _MAX_DAMAGED_READS)
        return failure.kind in (FailureKind.TRANSIENT, FailureKind.TIMEOUT) and attempt < self._attempts

    def _final_error(
        self, failure: Failure, operation: str, key: str, attempts: int, deadline: Deadline
    ) -> StorageError:
        if failure.kind is FailureKind.DAMAGED:
            return DamagedObject(key, failure.reason, "Use an older snapshot; check the server's disks.")
        if failure.kind is FailureKind.TRANSIENT and deadline.seconds_left <= 0:
            failure = failure._replace(kind=FailureKind.TIMEOUT)
        return failure.to_storage_error(self.store, operation, key, attempts)
