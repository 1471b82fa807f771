"""Objects in a bucket, under a prefix: what the operations of a store mean in S3."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from storage.errors import AlreadyExists, Changed, ObjectMissing, StoreTimeout
from storage.stores.arguments import checked_keys, checked_range, checked_timeout
from storage.stores.keys import checked_key, checked_prefix
from storage.stores.protocol import Bytes, Entry, Stored
from storage.stores.s3.bucket import MISSING, PAST_THE_END, PRECONDITION_FAILED, Bucket, Condition
from storage.stores.s3.calls import Answered, Deadline
from storage.stores.s3.clients import Clients
from storage.stores.s3.multipart import abort_leftovers, put_in_parts
from storage.stores.s3.payload import Payload
from storage.stores.s3.probe import PROBE

_MOST_DELETED_AT_ONCE = 1000  # S3's own limit
_LEFTOVER_SECONDS = 24 * 60 * 60.0  # no writer is at one object for a day

# One for the whole process: two stores may have been opened on one prefix. Conditional writes are small and rare.
_one_writer = threading.Lock()


class S3Store:
    """A bucket's objects below a prefix.

    An object's version is its ETag, which is a digest of its bytes: writing the same bytes again does not change it, so
    what is compared and swapped should carry a number that grows. Conditional writes go in one request whatever their
    size, and are meant for small objects: MinIO locks the key while it receives one.
    """

    def __init__(
        self, clients: Clients, bucket: Bucket, *, conditional: bool, timeout_seconds: float, multipart_bytes: int
    ) -> None:
        self._clients = clients
        self._bucket = bucket
        self._conditional = conditional
        self._timeout_seconds = timeout_seconds
        self._multipart_bytes = multipart_bytes

    def __repr__(self) -> str:
        return f"<S3Store {self.url}>"

    @property
    def url(self) -> str:
        return self._bucket.address.url

    @property
    def conditional(self) -> bool:
        return self._conditional

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        deadline = self._deadline(timeout)
        checked_key(key)
        payload = Payload(data)
        if len(payload.view) < self._multipart_bytes:
            return self._bucket.put(key, payload, deadline)
        return put_in_parts(self._bucket, key, payload, deadline)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> str:
        deadline = self._deadline(timeout)
        checked_key(key)
        if self._conditional:
            version = self._put_unless(key, data, {"IfNoneMatch": "*"}, deadline)
        else:
            with self._alone(key, deadline):
                there = self._bucket.head(key, deadline)
                version = self._bucket.put(key, Payload(data), deadline) if there is None else None
        if version is None:
            raise AlreadyExists(self.url, key)
        return version

    def compare_and_swap(self, key: str, data: Bytes, expected: str, *, timeout: float | None = None) -> str:
        deadline = self._deadline(timeout)
        checked_key(key)
        if self._conditional:
            version = self._put_unless(key, data, {"IfMatch": expected}, deadline)
        else:
            with self._alone(key, deadline):
                there = self._bucket.head(key, deadline)
                unchanged = there is not None and there.version == expected
                version = self._bucket.put(key, Payload(data), deadline) if unchanged else None
        if version is None:
            raise Changed(self.url, key)
        return version

    def get(self, key: str, *, timeout: float | None = None) -> Stored:
        try:
            return self._bucket.get(checked_key(key), self._deadline(timeout))
        except Answered:
            raise ObjectMissing(self.url, key) from None

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        deadline = self._deadline(timeout)
        checked_key(key)
        checked_range(start, stop)
        if start == stop:  # HTTP has no empty ranges
            if self._bucket.head(key, deadline) is None:
                raise ObjectMissing(self.url, key)
            return memoryview(b"")
        try:
            return self._bucket.get(key, deadline, (start, stop)).data
        except Answered as answer:
            if answer.failure.status == PAST_THE_END:
                return memoryview(b"")
            raise ObjectMissing(self.url, key) from None

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[Entry]:
        """As the protocol says; the timeout is for each page of a thousand, since the caller sets the pace."""
        checked_timeout(timeout)
        return self._entries(checked_prefix(prefix), timeout)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        deadline = self._deadline(timeout)
        doomed = checked_keys(keys)
        for start in range(0, len(doomed), _MOST_DELETED_AT_ONCE):
            self._bucket.delete(doomed[start : start + _MOST_DELETED_AT_ONCE], deadline)

    def abort_leftovers(self, *, older_than_seconds: float = _LEFTOVER_SECONDS, timeout: float | None = None) -> int:
        """Remove the parts that writers which were killed have left behind; how many uploads there were."""
        return abort_leftovers(self._bucket, older_than_seconds, self._deadline(timeout))

    def close(self) -> None:
        self._clients.close()

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._timeout_seconds if timeout is None else timeout)

    def _put_unless(self, key: str, data: Bytes, condition: Condition, deadline: Deadline) -> str | None:
        """The version, or None if the race is lost."""
        payload = Payload(data)
        try:
            return self._bucket.put(key, payload, deadline, condition, {MISSING, PRECONDITION_FAILED})
        except Answered:
            # An earlier attempt may have won and its answer got lost: then the object in the way is our own.
            there = self._bucket.head(key, deadline)
            return there.version if there is not None and there.write == payload.write else None

    @contextmanager
    def _alone(self, key: str, deadline: Deadline) -> Iterator[None]:
        """Without conditional writes: look, then write, and nobody else in this process in between."""
        if not _one_writer.acquire(timeout=max(deadline.left, 0)):
            raise StoreTimeout(self.url, "write", key, "another thread is writing")
        try:
            yield
        finally:
            _one_writer.release()

    def _entries(self, prefix: str, timeout: float | None) -> Iterator[Entry]:
        token = None
        while True:
            page = self._bucket.page(prefix, token, self._deadline(timeout))
            for item in page.get("Contents", ()):
                key = item["Key"].removeprefix(self._bucket.address.prefix)
                if not key.startswith(PROBE) and not key.endswith("/"):  # consoles make empty "folders"
                    yield Entry(key, item["Size"])
            token = page.get("NextContinuationToken")
            if not page["IsTruncated"] or token is None:
                return
