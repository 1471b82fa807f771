"""Keys of objects: built so that no object is the folder of another, on any store."""

import re

from storage.errors import InvalidStorageInput

# Only the last segment has an extension, so a key is never the "folder" of another key: MinIO hides everything below
# an object from listings, and a file system cannot hold a file and a folder of one name.
_KEY = re.compile(r"(?:[A-Za-z0-9_=-]+/)*[A-Za-z0-9_=-]+(?:\.[A-Za-z0-9_-]+)+")
_PREFIX = re.compile(r"(?:[A-Za-z0-9_=-]+/)*[A-Za-z0-9_=.-]*")
_MAX_KEY_LENGTH = 900  # S3 allows 1024 bytes, and a store's own prefix comes before the key
_MAX_SEGMENT_LENGTH = 200  # file systems and MinIO allow 255 bytes


def check_key(key: str) -> str:
    """Return the key; refuse it unless it is `folder/.../name.extension` in letters, digits, `_`, `=` and `-`."""
    if (
        not isinstance(key, str)
        or not _KEY.fullmatch(key)
        or len(key) > _MAX_KEY_LENGTH
        or max(map(len, key.split("/"))) > _MAX_SEGMENT_LENGTH
    ):
        raise InvalidStorageInput(
            f"{key!r} is not a key. Write folder/name.extension with letters, digits, '_', '=' and '-'; "
            "only the last part has an extension."
        )
    return key


def check_prefix(prefix: str) -> str:
    """Return the prefix; refuse it if no key can start with it."""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix) or len(prefix) > _MAX_KEY_LENGTH:
        raise InvalidStorageInput(f"{prefix!r} is not the beginning of a key. Write folder/ or folder/name.")
    return prefix


def to_key_segment(name: str) -> str:
    """Return a user's name (of an operator, say) as one segment of a key; special characters become `=xx`."""
    try:
        plain = re.sub(r"[^A-Za-z0-9_-]", lambda found: "".join(f"={byte:02x}" for byte in found[0].encode()), name)
    except UnicodeEncodeError:
        plain = ""
    if not plain:
        raise InvalidStorageInput(f"{name!r} cannot be part of a key. Give a name of whole characters.")
    return plain
