"""Single requests to one bucket under one prefix, retried; what they mean to a store is the store's business."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired, TypedDict

from botocore.exceptions import ClientError

from storage.stores.protocol import Stored
from storage.stores.s3.address import Address
from storage.stores.s3.calls import Answered, Calls, Deadline
from storage.stores.s3.payload import Outgoing, Payload, received, wire_checksum

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef

MISSING = 404
PRECONDITION_FAILED = 412
PAST_THE_END = 416


class Condition(TypedDict):
    """When a write is to be refused."""

    IfNoneMatch: NotRequired[str]
    IfMatch: NotRequired[str]


class Head(NamedTuple):
    """An object without its bytes."""

    version: str
    write: str | None  # which write made it, if one of ours did


class Bucket:
    """One method a request. Keys are the store's; the prefix is added and taken off here."""

    def __init__(self, address: Address, calls: Calls) -> None:
        self.address = address
        self.calls = calls
        self.checksums = True  # until the probe finds that the server refuses them

    def place(self, key: str) -> dict[str, Any]:
        """The arguments that say where an object is."""
        return {"Bucket": self.address.bucket, "Key": self.address.prefix + key}

    def sent(self, view: memoryview, crc32: int, deadline: Deadline) -> dict[str, Any]:
        """The arguments that send bytes."""
        checksum = {"ChecksumCRC32": wire_checksum(crc32)} if self.checksums else {}
        return {"Body": Outgoing(view, deadline), **checksum}

    def put(
        self,
        key: str,
        payload: Payload,
        deadline: Deadline,
        condition: Condition | None = None,
        heed: Collection[int] = (),
    ) -> str:
        """Write an object in one request; its version."""

        def send(client: "S3Client") -> str:
            body = self.sent(payload.view, payload.crc32, deadline)
            return client.put_object(**self.place(key), **body, Metadata=payload.metadata, **(condition or {}))["ETag"]

        return self.calls.make("write", key, deadline, send, heed)

    def head(self, key: str, deadline: Deadline) -> Head | None:
        """What is there; None if nothing is."""

        def send(client: "S3Client") -> Head:
            answer = client.head_object(**self.place(key))
            return Head(answer["ETag"], answer["Metadata"].get("write"))

        try:
            return self.calls.make("look at", key, deadline, send, {MISSING})
        except Answered:
            return None

    def get(self, key: str, deadline: Deadline, span: tuple[int, int] | None = None) -> Stored:
        """The object, or bytes start..stop-1 of it; `Answered` if it is missing or ends before."""
        some = {} if span is None else {"Range": f"bytes={span[0]}-{span[1] - 1}"}

        def send(client: "S3Client") -> Stored:
            answer = client.get_object(**self.place(key), **some)  # type: ignore[arg-type]
            in_part = "ContentRange" in answer  # a server may ignore the range, and send all
            promised = {} if in_part else answer["Metadata"]  # its checksum is that of the whole object
            data = received(answer["Body"], answer["ContentLength"], promised, deadline)
            return Stored(data if in_part or span is None else data[slice(*span)], answer["ETag"])

        return self.calls.make("read", key, deadline, send, {MISSING, PAST_THE_END})

    def page(self, prefix: str, token: str | None, deadline: Deadline) -> "ListObjectsV2OutputTypeDef":
        """Up to a thousand objects of a listing."""
        place = {"Bucket": self.address.bucket, "Prefix": self.address.prefix + prefix}
        next_page = {} if token is None else {"ContinuationToken": token}

        def send(client: "S3Client") -> "ListObjectsV2OutputTypeDef":
            return client.list_objects_v2(**place, **next_page)  # type: ignore[arg-type]

        return self.calls.make("list", prefix, deadline, send)

    def delete(self, keys: Sequence[str], deadline: Deadline) -> None:
        """Remove up to a thousand objects, whether they are there or not."""
        names = [{"Key": self.address.prefix + key} for key in keys]

        def send(client: "S3Client") -> None:
            answer = client.delete_objects(
                Bucket=self.address.bucket,
                Delete={"Objects": names, "Quiet": True},  # type: ignore[typeddict-item]
            )
            for error in answer.get("Errors", ()):
                if error.get("Code") != "NoSuchKey":
                    raise ClientError({"Error": error, "ResponseMetadata": answer["ResponseMetadata"]}, "DeleteObjects")  # type: ignore[typeddict-item]

        self.calls.make("delete", keys[0] if len(keys) == 1 else f"{keys[0]} ... {keys[-1]}", deadline, send)
