"""Objects in a bucket, under a prefix: what the operations of a store mean in S3."""

import threading
from collections.abc import Iterable, Iterator

from storage.errors import AlreadyExists, ObjectMissing, StoreTimeout
from storage.stores.arguments import Deadline, check_keys, check_range, check_timeout
from storage.stores.keys import check_key, check_prefix
from storage.stores.protocol import Bytes, ObjectInfo
from storage.stores.s3.bodies import WriteBody
from storage.stores.s3.bucket import MISSING, PAST_THE_END, PRECONDITION_FAILED, Bucket
from storage.stores.s3.clients import Clients
from storage.stores.s3.multipart import abort_leftovers, put_in_parts
from storage.stores.s3.retries import ExpectedStatus

PROBE_PREFIX = ".probe-"  # no key begins with a dot, so no listing shows what a killed probe leaves

_MAX_DELETED_AT_ONCE = 1000  # S3's own limit
_LEFTOVER_SECONDS = 24 * 60 * 60.0  # no writer takes a day for one object

# One for the whole process: two stores may have been opened on one prefix. Conditional writes are small and rare.
_write_lock = threading.Lock()


class S3Store:
    """A bucket's objects below a prefix.

    Conditional writes are one request whatever their size, and are meant for small objects: MinIO locks the key while
    it receives one.
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

    def put(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        deadline = self._deadline(timeout)
        check_key(key)
        body = WriteBody(data)
        if len(body.view) < self._multipart_bytes:
            self._bucket.put(key, body, deadline)
        else:
            put_in_parts(self._bucket, key, body, deadline)

    def put_if_absent(self, key: str, data: Bytes, *, timeout: float | None = None) -> None:
        deadline = self._deadline(timeout)
        check_key(key)
        body = WriteBody(data)
        if self._conditional:
            self._put_conditionally(key, body, deadline)
        else:
            self._look_and_put(key, body, deadline)

    def get(self, key: str, *, timeout: float | None = None) -> memoryview:
        try:
            return self._bucket.get(check_key(key), self._deadline(timeout))
        except ExpectedStatus:
            raise ObjectMissing(self.url, key) from None

    def get_range(self, key: str, start: int, stop: int, *, timeout: float | None = None) -> memoryview:
        deadline = self._deadline(timeout)
        check_key(key)
        check_range(start, stop)
        if start == stop:  # HTTP has no empty ranges
            if self._bucket.read_write_id(key, deadline) is None:
                raise ObjectMissing(self.url, key)
            return memoryview(b"")
        try:
            return self._bucket.get(key, deadline, (start, stop))
        except ExpectedStatus as answer:
            if answer.failure.status == PAST_THE_END:
                return memoryview(b"")
            raise ObjectMissing(self.url, key) from None

    def list(self, prefix: str = "", *, timeout: float | None = None) -> Iterator[ObjectInfo]:
        """As in every store; the timeout bounds each page of a thousand, since the caller sets the pace."""
        check_timeout(timeout)
        return self._walk_pages(check_prefix(prefix), timeout)

    def delete(self, keys: Iterable[str], *, timeout: float | None = None) -> None:
        deadline = self._deadline(timeout)
        unwanted = check_keys(keys)
        for start in range(0, len(unwanted), _MAX_DELETED_AT_ONCE):
            self._bucket.delete(unwanted[start : start + _MAX_DELETED_AT_ONCE], deadline)

    def abort_leftovers(self, *, older_than_seconds: float = _LEFTOVER_SECONDS, timeout: float | None = None) -> int:
        """Remove the parts that killed writers have left behind; return how many uploads there were."""
        return abort_leftovers(self._bucket, older_than_seconds, self._deadline(timeout))

    def close(self) -> None:
        self._clients.close()

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._timeout_seconds if timeout is None else timeout)

    def _put_conditionally(self, key: str, body: WriteBody, deadline: Deadline) -> None:
        try:
            self._bucket.put(key, body, deadline, if_absent=True, expected={MISSING, PRECONDITION_FAILED})
        except ExpectedStatus:
            # An earlier attempt may have won and its answer got lost: then the object is this writer's own.
            if self._bucket.read_write_id(key, deadline) != body.write_id:
                raise AlreadyExists(self.url, key) from None

    def _look_and_put(self, key: str, body: WriteBody, deadline: Deadline) -> None:
        """Write without a condition, alone in this process between looking and writing."""
        if not _write_lock.acquire(timeout=max(deadline.seconds_left, 0)):
            raise StoreTimeout(self.url, "write", key, "another thread is writing")
        try:
            if self._bucket.read_write_id(key, deadline) is not None:
                raise AlreadyExists(self.url, key)
            self._bucket.put(key, body, deadline)
        finally:
            _write_lock.release()

    def _walk_pages(self, prefix: str, timeout: float | None) -> Iterator[ObjectInfo]:
        token = None
        while True:
            page = self._bucket.list_page(prefix, token, self._deadline(timeout))
            for item in page.get("Contents", ()):
                key = item["Key"].removeprefix(self._bucket.address.prefix)
                if not key.startswith(PROBE_PREFIX) and not key.endswith("/"):  # consoles create empty "folders"
                    yield ObjectInfo(key, item["Size"])
            token = page.get("NextContinuationToken")
            if not page["IsTruncated"] or token is None:
                return
