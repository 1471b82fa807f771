"""Names of objects: made so that no object is the folder of another, on any store."""

import re

from storage.errors import InvalidStorageInput

# Only the last segment has an extension, so a key is never the "folder" of another key: MinIO hides everything below
# an object from listings, and a file system cannot hold a file and a folder of one name.
_KEY = re.compile(r"(?:[A-Za-z0-9_=-]+/)*[A-Za-z0-9_=-]+(?:\.[A-Za-z0-9_-]+)+")
_PREFIX = re.compile(r"(?:[A-Za-z0-9_=-]+/)*[A-Za-z0-9_=.-]*")
_LONGEST_KEY = 900  # S3 allows 1024 bytes, and a store's own prefix comes before the key
_LONGEST_SEGMENT = 200  # file systems and MinIO allow 255 bytes


def checked_key(key: str) -> str:
    """The key, refused unless it is `folder/.../name.extension` in plain letters, digits, `_`, `=` and `-`."""
    if (
        not isinstance(key, str)
        or not _KEY.fullmatch(key)
        or len(key) > _LONGEST_KEY
        or max(map(len, key.split("/"))) > _LONGEST_SEGMENT
    ):
        raise InvalidStorageInput(
            f"{key!r} is not a key. Write folder/name.extension with letters, digits, '_', '=' and '-'; "
            "only the last part has an extension."
        )
    return key


def checked_prefix(prefix: str) -> str:
    """The beginning of keys, for listings."""
    if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix) or len(prefix) > _LONGEST_KEY:
        raise InvalidStorageInput(f"{prefix!r} is not the beginning of a key. Write folder/ or folder/name.")
    return prefix


def name_segment(name: str) -> str:
    """A user's name (of an operator, say) as one segment of a key: plain characters stay, others become `=xx`."""
    try:
        plain = re.sub(r"[^A-Za-z0-9_-]", lambda found: "".join(f"={byte:02x}" for byte in found[0].encode()), name)
    except UnicodeEncodeError:
        plain = ""
    if not plain:
        raise InvalidStorageInput(f"{name!r} cannot be part of a key. Give a name of whole characters.")
    return plain
