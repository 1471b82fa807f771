"""Requests made until one is answered: bounded attempts, growing pauses, one deadline over all of it."""

import logging
import random
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeVar

from storage.errors import DamagedObject, StorageError
from storage.stores.arguments import checked_timeout
from storage.stores.s3.answers import FAILURES, Failure, Kind, understood
from storage.stores.s3.clients import Clients

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_DAMAGED_READS = 3  # a bit that flips three times in a row is flipped in the store
_CONNECTIONS_PER_CALL = 3  # a connection may be silent for a third of the time that is left, then there is another

_log = logging.getLogger("storage")
_jitter = random.SystemRandom()
Answer = TypeVar("Answer")


class Deadline:
    """When a call must be over, whatever happens."""

    def __init__(self, seconds: float) -> None:
        checked_timeout(seconds)
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    def check(self) -> None:
        """Between two pieces of a long transfer: a server that trickles is as bad as one that is silent."""
        if self.left <= 0:
            raise TimeoutError(f"not done within {self._seconds:g} s")


class Answered(Exception):
    """The server said no in a way that the caller wants to hear: missing, exists, past the end."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class Calls:
    """The only place that retries.

    Tried again, after a random pause of up to 0.1, 0.2, 0.4 ... 5 s (full jitter, so that many nodes do not come back
    in step): connections that fail, time out or break, 408, 429, 500, 502, 503, 504, throttling, and bodies that arrive
    damaged. Not tried again: everything else (see `answers`). A server that restarts within seconds is not noticed.
    """

    def __init__(self, store: str, clients: Clients, attempts: int) -> None:
        self.store = store
        self._clients = clients
        self._attempts = attempts

    def make(
        self,
        operation: str,
        key: str,
        deadline: Deadline,
        send: Callable[["S3Client"], Answer],
        heed: Collection[int] = (),
    ) -> Answer:
        """What `send` gives. `Answered` if the final answer has an HTTP status in `heed`, else a `StorageError`."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return send(self._clients.silent_for(deadline.left / _CONNECTIONS_PER_CALL))
            except FAILURES as error:
                failure = understood(error)
                if failure.status in heed and failure.heedable:
                    raise Answered(failure) from error
                pause = _jitter.uniform(0, min(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS))
                if not self._worth_another(failure, attempt) or deadline.left <= pause:
                    raise self._final_error(failure, operation, key, attempt, deadline) from error
                _log.debug("%s: attempt %d to %s %s failed: %s", self.store, attempt, operation, key, failure.reason)
            time.sleep(pause)

    def _worth_another(self, failure: Failure, attempt: int) -> bool:
        if failure.kind is Kind.DAMAGED:
            return attempt < min(self._attempts, _DAMAGED_READS)
        return failure.kind in (Kind.PASSING, Kind.SLOW) and attempt < self._attempts

    def _final_error(
        self, failure: Failure, operation: str, key: str, attempts: int, deadline: Deadline
    ) -> StorageError:
        if failure.kind is Kind.DAMAGED:
            return DamagedObject(key, failure.reason, "Use an older snapshot; check the server's disks.")
        if failure.kind is Kind.PASSING and deadline.left <= 0:
            failure = failure._replace(kind=Kind.SLOW)
        return failure.final_error(self.store, operation, key, attempts)
