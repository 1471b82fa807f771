"""How a data source reaches a job's objects, in whichever process Spark runs it."""

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import storage
from elastic.errors import InvalidSetting, UnknownSetting
from elastic.results import ResultLog
from elastic.runtime.access import StoreAccess
from elastic.secret import application_secret
from storage.codec import Secret
from storage.stores.protocol import Store

_OPEN_STORES = 8  # in one Python process, which Spark uses for many tasks


@dataclass(frozen=True)
class Credentials:
    """What sources need and options must not show, for options are part of plans and logs.

    `jobs` are those that this application runs, by the URL of their store and their name. The secret is for all other
    jobs, the settings for all other stores; without a secret it is the application's, as the process that plans finds
    it.
    """

    secret_bytes: bytes | None = field(default=None, repr=False)
    store_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    jobs: Mapping[tuple[str, str], StoreAccess] = field(default_factory=dict, repr=False)

    def access(self, url: str, job: str) -> StoreAccess:
        if (url, job) in self.jobs:
            return self.jobs[url, job]
        same_store = [access.settings for (known, _), access in self.jobs.items() if known == url]
        settings = same_store[-1] if same_store else self.store_settings
        return StoreAccess(url, dict(settings), self.secret_bytes or application_secret(None, os.environ).reveal())


@dataclass(frozen=True)
class Access:
    """A job in a store. It travels inside Spark's serialized functions; no plan and no log shows secret or settings."""

    url: str
    job: str
    secret_bytes: bytes = field(repr=False)
    settings_bytes: bytes = field(default=pickle.dumps({}), repr=False)  # of the store; bytes, so that they are hashed

    @property
    def secret(self) -> Secret:
        return Secret(self.secret_bytes)

    def store(self) -> Store:
        """Opened once in a process."""
        return _opened(self.url, self.settings_bytes)

    def log(self) -> ResultLog:
        """One in a process, for it remembers what it has seen."""
        return _log(self)

    @classmethod
    def of(cls, options: Mapping[str, str], known: tuple[str, ...], credentials: Credentials) -> "Access":
        """From the options of a source, of which `known` are its own, besides `store` and `name`."""
        if "secret" in options:
            raise InvalidSetting("secret", "***", "options are shown in plans; set ELASTIC_SECRET before Spark starts")
        names = {name.lower(): name for name in ("store", "name", *known)}
        for name in options:
            if name.lower() not in names:
                raise UnknownSetting(name, names.values())
        for name in ("store", "name"):
            if not options.get(name):
                raise InvalidSetting(name, None, "a source must say which job it reads, and where")
        found = credentials.access(options["store"], options["name"])
        return cls(found.url, options["name"], found.secret_bytes, pickle.dumps(found.settings))


def positive(options: Mapping[str, str], name: str) -> int | None:
    """An option that is a whole number above 0; None if it is not set."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InvalidSetting(name, text, "it is a whole number above 0")
    return int(text)


@lru_cache(_OPEN_STORES)
def _opened(url: str, settings_bytes: bytes) -> Store:
    # The bytes were made by `Access.of`, and travel as the rest of the function does.
    return storage.open(url, **pickle.loads(settings_bytes))  # noqa: S301


@lru_cache(_OPEN_STORES)
def _log(access: Access) -> ResultLog:
    return ResultLog(access.store(), access.secret, access.job)
