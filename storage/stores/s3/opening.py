"""Opening an S3 store: read the address, find the credentials, probe what the server honours."""

import logging
from typing import NamedTuple
from uuid import uuid4

from botocore.exceptions import BotoCoreError

from storage.errors import InvalidStorageInput, StorageError
from storage.stores.arguments import Deadline, check_timeout
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS
from storage.stores.s3.address import Address
from storage.stores.s3.bodies import WriteBody
from storage.stores.s3.bucket import MISSING, PRECONDITION_FAILED, Bucket
from storage.stores.s3.clients import Clients
from storage.stores.s3.failures import classify
from storage.stores.s3.retries import ExpectedStatus, RequestRetrier
from storage.stores.s3.store import PROBE_PREFIX, S3Store

_ATTEMPTS = 10  # with the pauses between them: about ten seconds
_ATTEMPTS_TO_OPEN = 4  # so that a wrong address is reported soon
_SECONDS_TO_OPEN = 10.0
_MULTIPART_BYTES = 64 * 1024 * 1024
_BAD_REQUEST = 400
_NOT_IMPLEMENTED = 501

_log = logging.getLogger("storage")


def open_s3(
    url: str,
    *,
    access_key: str | None = None,
    secret_key: str | None = None,
    region: str | None = None,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    attempts: int = _ATTEMPTS,
    multipart_bytes: int = _MULTIPART_BYTES,
) -> S3Store:
    """Open the store at `s3://bucket/prefix?endpoint=http://host:port`; without an endpoint, in AWS.

    Credentials are the given keys, else what the usual AWS chain finds (environment, profile, role). Opening writes and
    deletes a small object, so a store that opens has a bucket that exists and credentials that work.
    """
    if (access_key is None) != (secret_key is None):
        raise InvalidStorageInput("only one of access_key and secret_key is given. Give both, or neither.")
    if attempts < 1 or multipart_bytes < 1:
        raise InvalidStorageInput("attempts and multipart_bytes must be at least 1.")
    check_timeout(timeout_seconds)
    address = Address.parse(url)
    deadline = Deadline(min(timeout_seconds, _SECONDS_TO_OPEN))
    try:
        clients = Clients(address, access_key, secret_key, region)
    except BotoCoreError as error:  # a profile that does not exist, say
        raise classify(error).to_storage_error(address.url, "open", address.bucket, 1) from error
    try:
        probed = Bucket(address, RequestRetrier(address.url, clients, min(attempts, _ATTEMPTS_TO_OPEN)))
        capabilities = probe(probed, deadline)
    except BaseException:
        clients.close()
        raise
    bucket = Bucket(address, RequestRetrier(address.url, clients, attempts))
    bucket.checksums = capabilities.checksums
    store = S3Store(
        clients,
        bucket,
        conditional=capabilities.conditional_writes,
        timeout_seconds=timeout_seconds,
        multipart_bytes=multipart_bytes,
    )
    try:
        store.abort_leftovers(timeout=min(timeout_seconds, _SECONDS_TO_OPEN))
    except StorageError as error:  # needs a permission of its own, and without it costs only space
        _log.debug("%s: uploads of killed writers are not cleaned up: %s", address.url, error)
    return store


class Capabilities(NamedTuple):
    """The conditions that the server honours, as the probe found."""

    checksums: bool
    conditional_writes: bool


def probe(bucket: Bucket, deadline: Deadline) -> Capabilities:
    """Write a small object, try to write it again in a way that must fail, and delete it."""
    key = PROBE_PREFIX + uuid4().hex
    checksums = _accepts_checksums(bucket, key, deadline)
    bucket.checksums = checksums
    try:
        conditional_writes = _refuses_second_write(bucket, key, deadline)
    finally:
        bucket.delete([key], deadline)
    if not checksums:
        _log.warning(
            "%s refuses checksums of writes: bytes that are damaged in transit are stored damaged, and the damage is "
            "found when they are read.",
            bucket.retrier.store,
        )
    if not conditional_writes:
        _log.warning(
            "%s ignores If-None-Match, so two concurrent writers both succeed, and the later one overwrites what the "
            "earlier one committed. Run only one driver for each operator.",
            bucket.retrier.store,
        )
    return Capabilities(checksums, conditional_writes)


def _accepts_checksums(bucket: Bucket, key: str, deadline: Deadline) -> bool:
    try:
        bucket.put(key, WriteBody(b"1"), deadline, expected={_BAD_REQUEST, _NOT_IMPLEMENTED})
    except ExpectedStatus:
        bucket.checksums = False  # the only unusual thing about that request
        bucket.put(key, WriteBody(b"1"), deadline)
    return bucket.checksums


def _refuses_second_write(bucket: Bucket, key: str, deadline: Deadline) -> bool:
    """Whether the condition is honoured; a server without conditional writes ignores it or refuses every such write."""
    expected = {PRECONDITION_FAILED, MISSING, _NOT_IMPLEMENTED}
    try:
        bucket.put(key, WriteBody(b"1"), deadline, if_absent=True, expected=expected)
    except ExpectedStatus as answer:
        return answer.failure.status == PRECONDITION_FAILED
    return False
