"""All stores by the scheme of their URL, and `open`."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from storage.errors import InvalidStorageInput
from storage.stores.memory import open_memory
from storage.stores.protocol import Store

_CREDENTIAL = re.compile(r"access_?key|secret|token|password|passwd|credential|signature", re.IGNORECASE)


def open(url: str, **settings: Any) -> Store:  # noqa: A001 - callers write storage.open
    """Open the store at `url`: `memory:`, `memory:name`, `file:///folder` or `s3://bucket/prefix?endpoint=...`.

    Every store takes `timeout_seconds`, the default of its calls; for the others see the store's opener. Credentials
    are settings or come from the environment. A URL that holds one is refused, because URLs are printed.
    """
    parts = _split(url)
    _refuse_credentials(parts)
    opener = STORES.get(parts.scheme)
    if opener is None:
        known = ", ".join(f"{scheme}:" for scheme in STORES)
        raise InvalidStorageInput(f"no store has the scheme {parts.scheme!r}. Start the URL with one of {known}")
    return opener(url, **settings)


def _split(url: object) -> SplitResult:
    try:
        return urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        # Not chained: its text repeats the URL.
        raise InvalidStorageInput("the store's URL cannot be parsed. Fix its host, and encode [ and ] in it.") from None


def _refuse_credentials(parts: SplitResult) -> None:
    """Refuse a URL with a credential, in a message that does not repeat it."""
    is_folder = parts.scheme == "file" and parts.path.startswith("/")
    suspect = unquote(parts._replace(path="").geturl() if is_folder else parts.geturl())
    names = [name for name, _ in parse_qsl(f"{parts.query}&{parts.fragment}", keep_blank_values=True)]
    # A folder may be called user@host; elsewhere an @ ends a user and a password.
    if "@" in suspect or any(map(_CREDENTIAL.search, names)):
        raise InvalidStorageInput(
            "the store's URL holds a credential, and URLs are printed in logs. Remove it; give access_key and "
            "secret_key as settings, or use the usual AWS environment variables and files."
        )


def _open_file(url: str, **settings: Any) -> Store:
    # Imported late, because it needs POSIX locks, and other stores do not.
    from storage.stores.file import open_file

    return _open_with(open_file, url, settings)


def _open_memory(url: str, **settings: Any) -> Store:
    return _open_with(open_memory, url, settings)


def _open_s3(url: str, **settings: Any) -> Store:
    try:
        # Imported late, because boto3 is an extra, and takes longer to import than everything else.
        from storage.stores.s3 import open_s3
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("boto3", "botocore"):
            raise
        raise InvalidStorageInput("s3: stores need boto3, which is missing. Install spark-elastic[s3].") from missing
    return _open_with(open_s3, url, settings)


def _open_with(opener: Callable[..., Store], url: str, settings: Mapping[str, Any]) -> Store:
    """Refuse a setting that the opener does not know, by its name (its value may be a secret), and call the opener."""
    known = tuple(inspect.signature(opener).parameters)[1:]
    for name in settings:
        if name not in known:
            raise InvalidStorageInput(f"this store has no setting {name!r}. It has {', '.join(known)}.")
    return opener(url, **settings)


STORES: Mapping[str, Callable[..., Store]] = {"memory": _open_memory, "file": _open_file, "s3": _open_s3}
