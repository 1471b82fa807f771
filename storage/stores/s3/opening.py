"""The one way to an S3 store: reads the address, finds the credentials, tries out the server."""

import logging

from botocore.exceptions import BotoCoreError

from storage.errors import InvalidStorageInput, StorageError
from storage.stores.arguments import checked_timeout
from storage.stores.protocol import DEFAULT_TIMEOUT_SECONDS
from storage.stores.s3.address import Address
from storage.stores.s3.answers import understood
from storage.stores.s3.bucket import Bucket
from storage.stores.s3.calls import Calls, Deadline
from storage.stores.s3.clients import Clients
from storage.stores.s3.probe import probe
from storage.stores.s3.store import S3Store

_ATTEMPTS = 10  # with the pauses between them: about ten seconds
_ATTEMPTS_TO_OPEN = 4  # a wrong address should be known at once
_SECONDS_TO_OPEN = 10.0
_MULTIPART_BYTES = 64 * 1024 * 1024

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
    """The store at `s3://bucket/prefix?endpoint=http://host:port`; without an endpoint, in AWS.

    Credentials are the given keys, else what the usual AWS chain finds (environment, profile, role). Opening writes and
    deletes a small object, so a store that opens has a bucket that is there and credentials that work.
    """
    if (access_key is None) != (secret_key is None):
        raise InvalidStorageInput("an access key without a secret key, or the reverse. Give both, or neither.")
    if attempts < 1 or multipart_bytes < 1:
        raise InvalidStorageInput("attempts and multipart_bytes must be at least 1.")
    checked_timeout(timeout_seconds)
    address = Address.parse(url)
    deadline = Deadline(min(timeout_seconds, _SECONDS_TO_OPEN))
    try:
        clients = Clients(address, access_key, secret_key, region)
    except BotoCoreError as error:  # a profile that does not exist, say
        raise understood(error).final_error(address.url, "open", address.bucket, 1) from error
    try:
        careful = Bucket(address, Calls(address.url, clients, min(attempts, _ATTEMPTS_TO_OPEN)))
        honoured = probe(careful, deadline)
    except BaseException:
        clients.close()
        raise
    bucket = Bucket(address, Calls(address.url, clients, attempts))
    bucket.checksums = honoured.checksums
    store = S3Store(
        clients,
        bucket,
        conditional=honoured.conditions,
        timeout_seconds=timeout_seconds,
        multipart_bytes=multipart_bytes,
    )
    try:
        store.abort_leftovers(timeout=min(timeout_seconds, _SECONDS_TO_OPEN))
    except StorageError as error:  # needs a permission of its own, and costs only space if it is not given
        _log.debug("%s: uploads of killed writers are not cleaned: %s", address.url, error)
    return store
