"""The address of an S3 store: `s3://bucket/prefix?endpoint=http://host:port&region=name`."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from storage.errors import InvalidStorageInput

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_PREFIX = re.compile(r"(?:(?!\.{1,2}/)[A-Za-z0-9_=.-]+/)*")
_REGION = re.compile(r"[A-Za-z0-9-]+")
_MAX_PREFIX_LENGTH = 120  # S3 allows 1024 bytes, a key takes up to 900 of them


@dataclass(frozen=True)
class Address:
    """A bucket, the prefix of all keys in it, and the server. It holds no credential, so it is safe to print."""

    bucket: str
    prefix: str  # empty, or ends with a slash
    endpoint: str | None  # None is AWS
    region: str | None

    def __post_init__(self) -> None:
        if not _BUCKET.fullmatch(self.bucket):
            raise InvalidStorageInput("an S3 URL names no valid bucket. Write s3://bucket/prefix.")
        if not _PREFIX.fullmatch(self.prefix) or len(self.prefix) > _MAX_PREFIX_LENGTH:
            raise InvalidStorageInput(
                f"an S3 URL's prefix is not made of letters, digits, '_', '=', '.', '-' and single slashes, "
                f"or is longer than {_MAX_PREFIX_LENGTH}. Write s3://bucket/folder/folder."
            )
        if self.endpoint is not None and not _is_server(self.endpoint):
            raise InvalidStorageInput(
                "an S3 URL's endpoint is not a server's address. Write endpoint=http://host:port."
            )
        if self.region is not None and not _REGION.fullmatch(self.region):
            raise InvalidStorageInput("an S3 URL's region is not a region's name. Write region=us-east-1, say.")

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse a URL. No error repeats it: it may hold a secret."""
        try:
            scheme, place, path, query, fragment = urlsplit(url)
            options = dict(parse_qsl(query, strict_parsing=True) if query else ())
        except ValueError:
            raise InvalidStorageInput(
                "this is not a URL. Write s3://bucket/prefix?endpoint=http://host:port."
            ) from None
        if scheme != "s3" or fragment:
            raise InvalidStorageInput("this is not an S3 URL. Write s3://bucket/prefix?endpoint=http://host:port.")
        if "@" in place or not options.keys() <= {"endpoint", "region"}:
            raise InvalidStorageInput(
                "an S3 URL takes endpoint= and region= and nothing else. Give credentials as settings or through "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; a URL ends up in logs."
            )
        prefix = path.strip("/")
        endpoint = options.get("endpoint")
        return cls(
            place, prefix and prefix + "/", None if endpoint is None else endpoint.rstrip("/"), options.get("region")
        )

    @property
    def url(self) -> str:
        options = {name: value for name in ("endpoint", "region") if (value := getattr(self, name)) is not None}
        query = "?" + urlencode(options, safe=":/") if options else ""
        return f"s3://{self.bucket}/{self.prefix.rstrip('/')}{query}"


def _is_server(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        nothing_else = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc or parts.port == 0)
    except ValueError:  # a port that is no number
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and nothing_else
