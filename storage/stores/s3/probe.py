"""Tries out what the server honours, with one small object under the store's own prefix."""

import logging
from typing import NamedTuple
from uuid import uuid4

from storage.stores.s3.bucket import MISSING, PRECONDITION_FAILED, Bucket, Condition
from storage.stores.s3.calls import Answered, Deadline
from storage.stores.s3.payload import Payload

# No key begins with a dot, so a probe that was killed leaves nothing that a listing shows.
PROBE = ".probe-"
_BAD_REQUEST = 400
_NOT_IMPLEMENTED = 501
_NO_SUCH_VERSION = '"00000000000000000000000000000000"'

_log = logging.getLogger("storage")


class Honoured(NamedTuple):
    """What the server was seen to do."""

    checksums: bool
    conditions: bool


def probe(bucket: Bucket, deadline: Deadline) -> Honoured:
    """Write an object, try to write over it in ways that must fail and one that must not, and delete it."""
    key = PROBE + uuid4().hex
    version, checksums = _first_write(bucket, key, deadline)
    bucket.checksums = checksums
    try:
        conditions = (
            _refused(bucket, key, {"IfNoneMatch": "*"}, deadline)
            and _refused(bucket, key, {"IfMatch": _NO_SUCH_VERSION}, deadline)
            and not _refused(bucket, key, {"IfMatch": version}, deadline)
        )
    finally:
        bucket.delete([key], deadline)
    if not checksums:
        _log.warning(
            "%s refuses checksums of what is written to it: bytes that change on their way there are stored as they "
            "arrive, and found when they are read.",
            bucket.calls.store,
        )
    if not conditions:
        _log.warning(
            "%s ignores If-None-Match or If-Match: of two writers, both believe to have won, and the later one "
            "destroys what the earlier one committed. Run only one controller for each operator.",
            bucket.calls.store,
        )
    return Honoured(checksums, conditions)


def _first_write(bucket: Bucket, key: str, deadline: Deadline) -> tuple[str, bool]:
    try:
        return bucket.put(key, Payload(b"1"), deadline, heed={_BAD_REQUEST, _NOT_IMPLEMENTED}), True
    except Answered:
        bucket.checksums = False  # the only unusual thing about that request
        return bucket.put(key, Payload(b"1"), deadline), False


def _refused(bucket: Bucket, key: str, condition: Condition, deadline: Deadline) -> bool:
    """Whether the condition kept the write from happening; a server that cannot do conditions refuses everything."""
    try:
        bucket.put(key, Payload(b"1"), deadline, condition, {PRECONDITION_FAILED, MISSING, _NOT_IMPLEMENTED})
    except Answered as answer:
        return answer.failure.status == PRECONDITION_FAILED
    return False
