"""Large objects in parts: several at the same time, all or nothing, and nothing left behind."""

import logging
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from storage.errors import StorageError
from storage.stores.s3.bucket import MISSING, Bucket
from storage.stores.s3.calls import Answered, Deadline
from storage.stores.s3.payload import Payload, wire_checksum

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, MultipartUploadTypeDef

_PART = 32 * 1024 * 1024  # S3 takes 5 MB to 5 GB
_MOST_PARTS = 10_000
_PARTS_AT_ONCE = 4
_ABORT_SECONDS = (0.5, 5.0)  # some time, even when the write has used up its own; not long, if the server is away
_LEFTOVERS_AT_ONCE = 100  # so that cleaning never holds up an opening for long; the next opening goes on

_log = logging.getLogger("storage")


def put_in_parts(bucket: Bucket, key: str, payload: Payload, deadline: Deadline) -> str:
    """Write an object in parts; its version. Until the last request it is not there, and a failure leaves nothing."""
    upload = _Upload(bucket, key, _begun(bucket, key, payload, deadline), deadline)
    try:
        return upload.completed(upload.sent(payload.view), payload)
    except BaseException:
        upload.abort()
        raise


def _begun(bucket: Bucket, key: str, payload: Payload, deadline: Deadline) -> str:
    checksum: dict[str, Any] = {"ChecksumAlgorithm": "CRC32"} if bucket.checksums else {}

    def send(client: "S3Client") -> str:
        return client.create_multipart_upload(**bucket.place(key), **checksum, Metadata=payload.metadata)["UploadId"]

    return bucket.calls.make("begin to write", key, deadline, send)


@dataclass(frozen=True)
class _Upload:
    """An upload that has begun, and must end: completed or aborted."""

    bucket: Bucket
    key: str
    upload_id: str
    deadline: Deadline

    @property
    def place(self) -> dict[str, Any]:
        return {**self.bucket.place(self.key), "UploadId": self.upload_id}

    def sent(self, view: memoryview) -> "list[CompletedPartTypeDef]":
        """All parts, several at a time; the first failure cancels those that have not begun."""
        step = max(_PART, -(-len(view) // _MOST_PARTS))
        parts = [view[start : start + step] for start in range(0, len(view), step)]
        with ThreadPoolExecutor(_PARTS_AT_ONCE, "s3-part") as threads:
            return list(threads.map(self._sent_part, count(1), parts))

    def _sent_part(self, number: int, part: memoryview) -> "CompletedPartTypeDef":
        crc32 = zlib.crc32(part)

        def send(client: "S3Client") -> str:
            body = self.bucket.sent(part, crc32, self.deadline)
            return client.upload_part(**self.place, PartNumber=number, **body)["ETag"]

        version = self.bucket.calls.make(f"write part {number} of", self.key, self.deadline, send)
        if not self.bucket.checksums:
            return {"PartNumber": number, "ETag": version}
        return {"PartNumber": number, "ETag": version, "ChecksumCRC32": wire_checksum(crc32)}

    def completed(self, parts: "list[CompletedPartTypeDef]", payload: Payload) -> str:
        """Make the parts an object; its version."""

        def send(client: "S3Client") -> str:
            return client.complete_multipart_upload(**self.place, MultipartUpload={"Parts": parts})["ETag"]

        try:
            return self.bucket.calls.make("finish writing", self.key, self.deadline, send, {MISSING})
        except Answered as answer:
            # No such upload: it was completed by an attempt whose answer was lost, or aborted by somebody else.
            there = self.bucket.head(self.key, self.deadline)
            if there is None or there.write != payload.write:
                raise answer.failure.final_error(self.bucket.calls.store, "finish writing", self.key, 1) from answer
            return there.version

    def abort(self) -> None:
        def send(client: "S3Client") -> None:
            client.abort_multipart_upload(**self.place)

        least, most = _ABORT_SECONDS
        deadline = Deadline(min(max(self.deadline.left, least), most))
        try:
            self.bucket.calls.make("abort", self.key, deadline, send, {MISSING})
        except (StorageError, Answered) as error:  # the write's own error matters more; a later opening cleans up
            _log.debug("an upload of %s is left behind: %s", self.key, error)


def abort_leftovers(bucket: Bucket, older_than_seconds: float, deadline: Deadline) -> int:
    """Abort uploads under the prefix that no living writer can be at; how many there were.

    MinIO lists uploads only by their whole name, so none are found there; it removes them itself after a day.
    """

    def send(client: "S3Client") -> "list[MultipartUploadTypeDef]":
        address = bucket.address
        answer = client.list_multipart_uploads(
            Bucket=address.bucket, Prefix=address.prefix, MaxUploads=_LEFTOVERS_AT_ONCE
        )
        return answer.get("Uploads", [])

    before = datetime.now(UTC) - timedelta(seconds=older_than_seconds)
    found = [
        upload for upload in bucket.calls.make("list uploads of", "", deadline, send) if upload["Initiated"] < before
    ]
    for upload in found:
        key = upload["Key"].removeprefix(bucket.address.prefix)
        _Upload(bucket, key, upload["UploadId"], deadline).abort()
    return len(found)
