"""The S3 store over a client in this process: what it sends, and how it reads lost, late and damaged answers."""

import io
import zlib
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.response import StreamingBody

from storage.errors import AlreadyExists, DamagedObject, ObjectMissing, StoreUnavailable
from storage.stores.s3 import S3Store, retries
from storage.stores.s3.address import Address
from storage.stores.s3.bucket import Bucket
from storage.stores.s3.retries import RequestRetrier


class FakeClient:
    """A bucket in a dict, with the calls of boto3 that the store makes for small objects."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.lost_answers = 0  # of the next writes that succeed
        self.requests: list[str] = []

    def with_timeout(self, _seconds: float) -> "FakeClient":
        return self

    def close(self) -> None:
        """Do nothing."""

    def put_object(self, *, Key: str, Body: Any, Metadata: dict[str, str], **conditions: str) -> None:  # noqa: N803
        self.requests.append("put")
        if conditions.get("IfNoneMatch") == "*" and Key in self.objects:
            raise failure(412, "PreconditionFailed")
        self.objects[Key] = (bytes(Body.read()), Metadata)
        if self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionResetError("the answer is lost")

    def head_object(self, *, Key: str, **_: str) -> dict[str, Any]:  # noqa: N803
        self.requests.append("head")
        return {"Metadata": self._find(Key)[1]}

    def get_object(self, *, Key: str, **_: str) -> dict[str, Any]:  # noqa: N803
        self.requests.append("get")
        data, metadata = self._find(Key)
        body = StreamingBody(io.BytesIO(data), len(data))
        return {"Body": body, "ContentLength": len(data), "Metadata": metadata}

    def _find(self, key: str) -> tuple[bytes, dict[str, str]]:
        if key not in self.objects:
            raise failure(404, "NoSuchKey")
        return self.objects[key]


def failure(status: int, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "call")  # type: ignore[typeddict-item]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_FIRST_PAUSE_SECONDS", 0.001)


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


def open_over(client: FakeClient, *, conditional: bool = True) -> S3Store:
    address = Address.parse("s3://bucket/prefix")
    clients: Any = client
    bucket = Bucket(address, RequestRetrier(address.url, clients, attempts=3))
    return S3Store(clients, bucket, conditional=conditional, timeout_seconds=5, multipart_bytes=1 << 20)


@pytest.mark.parametrize("conditional", [True, False])
def test_an_object_that_exists_is_not_overwritten_by_put_if_absent(client: FakeClient, conditional: bool) -> None:
    store = open_over(client, conditional=conditional)
    store.put_if_absent("a.x", b"first")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("a.x", b"second")
    assert bytes(store.get("a.x")) == b"first"
    store.put("a.x", b"third")
    assert bytes(store.get("a.x")) == b"third"


def test_a_winner_whose_answer_was_lost_finds_its_own_object(client: FakeClient) -> None:
    client.lost_answers = 1
    open_over(client).put_if_absent("a.x", b"mine")
    assert client.requests == ["put", "put", "head"]
    assert client.objects["prefix/a.x"][0] == b"mine"


def test_a_lost_race_against_the_same_bytes_is_lost(client: FakeClient) -> None:
    open_over(client).put_if_absent("a.x", b"same")
    with pytest.raises(AlreadyExists):
        open_over(client).put_if_absent("a.x", b"same")


def test_a_write_without_any_answer_ends_after_the_allowed_attempts(client: FakeClient) -> None:
    client.lost_answers = 9
    with pytest.raises(StoreUnavailable, match="tried 3 times"):
        open_over(client).put("a.x", b"")
    assert client.requests == ["put"] * 3


def test_an_object_with_a_wrong_checksum_is_read_again_and_then_refused(client: FakeClient) -> None:
    store = open_over(client)
    store.put("a.x", b"right")
    _, metadata = client.objects["prefix/a.x"]
    assert metadata["crc32"] == f"{zlib.crc32(b'right'):08x}"
    client.objects["prefix/a.x"] = (b"wrong", metadata)
    client.requests.clear()
    with pytest.raises(DamagedObject, match="CRC32"):
        store.get("a.x")
    assert client.requests == ["get"] * 3


def test_a_missing_object_is_reported_without_a_retry(client: FakeClient) -> None:
    with pytest.raises(ObjectMissing):
        open_over(client).get("a.x")
    assert client.requests == ["get"]
