"""How a data source reaches a job's objects, in whichever process Spark runs it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import storage
from elastic.errors import InvalidSetting, UnknownSetting
from elastic.results import ResultLog
from elastic.secret import application_secret
from storage.codec import Secret
from storage.stores.protocol import Store

_OPEN_STORES = 8  # in one Python process, which Spark uses for many tasks


@dataclass(frozen=True)
class Access:
    """A job in a store. It travels inside Spark's serialized functions; no plan and no log shows the secret."""

    url: str
    job: str
    secret_bytes: bytes = field(repr=False)

    @property
    def secret(self) -> Secret:
        return Secret(self.secret_bytes)

    def store(self) -> Store:
        """Opened once in a process."""
        return _opened(self.url)

    def log(self) -> ResultLog:
        """One in a process, for it remembers what it has seen."""
        return _log(self)

    @classmethod
    def of(cls, options: Mapping[str, str], known: tuple[str, ...], secret_bytes: bytes | None) -> "Access":
        """From the options of a source, of which `known` are its own, besides `store` and `name`.

        Without a secret of its own it is the application's, as the process that plans finds it.
        """
        if "secret" in options:
            raise InvalidSetting("secret", "***", "options are shown in plans; set ELASTIC_SECRET before Spark starts")
        names = {name.lower(): name for name in ("store", "name", *known)}
        for name in options:
            if name.lower() not in names:
                raise UnknownSetting(name, names.values())
        for name in ("store", "name"):
            if not options.get(name):
                raise InvalidSetting(name, None, "a source must say which job it reads, and where")
        found = secret_bytes or application_secret(None, os.environ).reveal()
        return cls(options["store"], options["name"], found)


def positive(options: Mapping[str, str], name: str) -> int | None:
    """An option that is a whole number above 0; None if it is not set."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InvalidSetting(name, text, "it is a whole number above 0")
    return int(text)


@lru_cache(_OPEN_STORES)
def _opened(url: str) -> Store:
    return storage.open(url)


@lru_cache(_OPEN_STORES)
def _log(access: Access) -> ResultLog:
    return ResultLog(access.store(), access.secret, access.job)
