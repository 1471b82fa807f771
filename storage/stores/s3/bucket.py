"""Single requests to one bucket under one prefix, with retries."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from storage.stores.arguments import Deadline
from storage.stores.s3.address import Address
from storage.stores.s3.bodies import BodyReader, WriteBody, format_checksum, read_body
from storage.stores.s3.retries import ExpectedStatus, RequestRetrier

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

MISSING = 404
PRECONDITION_FAILED = 412
PAST_THE_END = 416


class Bucket:
    """One method a request. Keys are the store's; this class adds the prefix."""

    def __init__(self, address: Address, retrier: RequestRetrier) -> None:
        self.address = address
        self.retrier = retrier
        self.checksums = True  # until the probe finds that the server refuses them

    def location(self, key: str) -> dict[str, Any]:
        """Return the arguments that say where an object is."""
        return {"Bucket": self.address.bucket, "Key": self.address.prefix + key}

    def body(self, view: memoryview, crc32: int, deadline: Deadline) -> dict[str, Any]:
        """Return the arguments that send bytes."""
        checksum = {"ChecksumCRC32": format_checksum(crc32)} if self.checksums else {}
        return {"Body": BodyReader(view, deadline), **checksum}

    def put(
        self,
        key: str,
        body: WriteBody,
        deadline: Deadline,
        *,
        if_absent: bool = False,
        expected: Collection[int] = (),
    ) -> None:
        """Write an object in one request."""
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}

        def request(client: "S3Client") -> None:
            data = self.body(body.view, body.crc32, deadline)
            client.put_object(**self.location(key), **data, Metadata=body.metadata, **condition)

        self.retrier.send("write", key, deadline, request, expected)

    def read_write_id(self, key: str, deadline: Deadline) -> str | None:
        """Return the id of the write that stored the object ("" if it has none); None if there is no object."""

        def request(client: "S3Client") -> str:
            return client.head_object(**self.location(key))["Metadata"].get("write", "")

        try:
            return self.retrier.send("look at", key, deadline, request, {MISSING})
        except ExpectedStatus:
            return None

    def get(self, key: str, deadline: Deadline, span: tuple[int, int] | None = None) -> memoryview:
        """Return the object, or bytes start..stop-1 of it; `ExpectedStatus` if it is missing or ends before."""
        byte_range = {} if span is None else {"Range": f"bytes={span[0]}-{span[1] - 1}"}

        def request(client: "S3Client") -> memoryview:
            answer = client.get_object(**self.location(key), **byte_range)  # type: ignore[arg-type]
            is_partial = "ContentRange" in answer  # a server may ignore the range, and send all
            metadata = {} if is_partial else answer["Metadata"]  # its checksum is that of the whole object
            data = read_body(answer["Body"], answer["ContentLength"], metadata, deadline)
            return data if is_partial or span is None else data[slice(*span)]

        return self.retrier.send("read", key, deadline, request, {MISSING, PAST_THE_END})

    def list_page(self, prefix: str, token: str | None, deadline: Deadline) -> "ListObjectsV2OutputTypeDef":
        """Return up to a thousand objects of a listing."""
        location = {"Bucket": self.address.bucket, "Prefix": self.address.prefix + prefix}
        next_page = {} if token is None else {"ContinuationToken": token}

        def request(client: "S3Client") -> "ListObjectsV2OutputTypeDef":
            return client.list_objects_v2(**location, **next_page)  # type: ignore[arg-type]

        return self.retrier.send("list", prefix, deadline, request)

    def delete(self, keys: Sequence[str], deadline: Deadline) -> None:
        """Remove up to a thousand objects, whether they exist or not."""
        names = [{"Key": self.address.prefix + key} for key in keys]

        def request(client: "S3Client") -> None:
            answer = client.delete_objects(
                Bucket=self.address.bucket,
                Delete={"Objects": names, "Quiet": True},  # type: ignore[typeddict-item]
            )
            for error in answer.get("Errors", ()):
                if error.get("Code") != "NoSuchKey":
                    raise ClientError({"Error": error, "ResponseMetadata": answer["ResponseMetadata"]}, "DeleteObjects")  # type: ignore[typeddict-item]

        self.retrier.send("delete", keys[0] if len(keys) == 1 else f"{keys[0]} ... {keys[-1]}", deadline, request)
