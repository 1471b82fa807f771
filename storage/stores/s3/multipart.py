"""Large objects in parts: several at the same time, all or nothing, without leftovers."""

import logging
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from storage.errors import StorageError
from storage.stores.arguments import Deadline
from storage.stores.s3.bodies import WriteBody, format_checksum
from storage.stores.s3.bucket import MISSING, Bucket
from storage.stores.s3.retries import ExpectedStatus

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, MultipartUploadTypeDef

_PART_BYTES = 32 * 1024 * 1024  # S3 takes 5 MB to 5 GB
_MAX_PARTS = 10_000
_PARTS_AT_ONCE = 4
_ABORT_SECONDS = (0.5, 5.0)  # some time even when the write has used up its own; not long if the server is down
_LEFTOVERS_AT_ONCE = 100  # so that cleaning never delays an opening for long; the next opening continues

_log = logging.getLogger("storage")


def put_in_parts(bucket: Bucket, key: str, body: WriteBody, deadline: Deadline) -> None:
    """Write an object in parts; it exists from the last request on, and a failure leaves nothing behind."""
    upload = _Upload(bucket, key, _begin_upload(bucket, key, body, deadline), deadline)
    try:
        upload.complete(upload.send_parts(body.view), body)
    except BaseException:
        upload.abort()
        raise


def _begin_upload(bucket: Bucket, key: str, body: WriteBody, deadline: Deadline) -> str:
    checksum: dict[str, Any] = {"ChecksumAlgorithm": "CRC32"} if bucket.checksums else {}

    def request(client: "S3Client") -> str:
        return client.create_multipart_upload(**bucket.location(key), **checksum, Metadata=body.metadata)["UploadId"]

    return bucket.retrier.send("begin to write", key, deadline, request)


@dataclass(frozen=True)
class _Upload:
    """An upload that has begun, and must end: completed or aborted."""

    bucket: Bucket
    key: str
    upload_id: str
    deadline: Deadline

    @property
    def location(self) -> dict[str, Any]:
        return {**self.bucket.location(self.key), "UploadId": self.upload_id}

    def send_parts(self, view: memoryview) -> "list[CompletedPartTypeDef]":
        """Send all parts, several at a time; the first failure cancels those that have not begun."""
        step = max(_PART_BYTES, -(-len(view) // _MAX_PARTS))
        parts = [view[start : start + step] for start in range(0, len(view), step)]
        with ThreadPoolExecutor(_PARTS_AT_ONCE, "s3-part") as threads:
            return list(threads.map(self._send_part, count(1), parts))

    def _send_part(self, number: int, part: memoryview) -> "CompletedPartTypeDef":
        crc32 = zlib.crc32(part)

        def request(client: "S3Client") -> str:
            data = self.bucket.body(part, crc32, self.deadline)
            return client.upload_part(**self.location, PartNumber=number, **data)["ETag"]

        etag = self.bucket.retrier.send(f"write part {number} of", self.key, self.deadline, request)
        if not self.bucket.checksums:
            return {"PartNumber": number, "ETag": etag}
        return {"PartNumber": number, "ETag": etag, "ChecksumCRC32": format_checksum(crc32)}

    def complete(self, parts: "list[CompletedPartTypeDef]", body: WriteBody) -> None:
        """Make the parts an object."""

        def request(client: "S3Client") -> None:
            client.complete_multipart_upload(**self.location, MultipartUpload={"Parts": parts})

        try:
            self.bucket.retrier.send("finish writing", self.key, self.deadline, request, {MISSING})
        except ExpectedStatus as answer:
            # No such upload: an attempt whose answer was lost has completed it, or another process has aborted it.
            if self.bucket.read_write_id(self.key, self.deadline) != body.write_id:
                store = self.bucket.retrier.store
                raise answer.failure.to_storage_error(store, "finish writing", self.key, 1) from answer

    def abort(self) -> None:
        def request(client: "S3Client") -> None:
            client.abort_multipart_upload(**self.location)

        least, most = _ABORT_SECONDS
        deadline = Deadline(min(max(self.deadline.seconds_left, least), most))
        try:
            self.bucket.retrier.send("abort", self.key, deadline, request, {MISSING})
        except (StorageError, ExpectedStatus) as error:  # the write's own error matters more; a later opening cleans up
            _log.debug("an upload of %s is left behind: %s", self.key, error)


def abort_leftovers(bucket: Bucket, older_than_seconds: float, deadline: Deadline) -> int:
    """Abort uploads under the prefix that are older than any live writer; return how many there were.

    MinIO lists uploads only by their whole name, so none are found there; it removes them itself after a day.
    """

    def request(client: "S3Client") -> "list[MultipartUploadTypeDef]":
        address = bucket.address
        answer = client.list_multipart_uploads(
            Bucket=address.bucket, Prefix=address.prefix, MaxUploads=_LEFTOVERS_AT_ONCE
        )
        return answer.get("Uploads", [])

    before = datetime.now(UTC) - timedelta(seconds=older_than_seconds)
    uploads = bucket.retrier.send("list uploads of", "", deadline, request)
    found = [upload for upload in uploads if upload["Initiated"] < before]
    for upload in found:
        key = upload["Key"].removeprefix(bucket.address.prefix)
        _Upload(bucket, key, upload["UploadId"], deadline).abort()
    return len(found)
