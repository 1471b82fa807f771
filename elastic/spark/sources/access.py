"""Access of a data source to a job's objects, from any process that Spark runs it in."""

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import storage
from elastic.errors import InvalidSetting, UnknownSetting
from elastic.results import ResultLog
from elastic.secret import application_secret
from elastic.store_access import StoreAccess
from storage.codec import Secret
from storage.stores.protocol import Store

_OPEN_STORES = 8  # per Python process, which Spark reuses for many tasks


@dataclass(frozen=True)
class Credentials:
    """Secrets and store settings of data sources; options must not hold them, because plans and logs show options.

    `jobs` are those that this application runs, by the URL of their store and their name. The secret is for all other
    jobs, the settings for all other stores. Without a secret the planning process uses the application's.
    """

    secret_bytes: bytes | None = field(default=None, repr=False)
    store_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    jobs: Mapping[tuple[str, str], StoreAccess] = field(default_factory=dict, repr=False)

    def access(self, url: str, job: str) -> StoreAccess:
        """Return the access to a job's store: its own if this application runs it."""
        if (url, job) in self.jobs:
            return self.jobs[url, job]
        same_store = [access.settings for (known, _), access in self.jobs.items() if known == url]
        settings = same_store[-1] if same_store else self.store_settings
        return StoreAccess(url, dict(settings), self.secret_bytes or application_secret(None, os.environ).reveal())


@dataclass(frozen=True)
class JobAccess:
    """A job in a store. Spark's serialized functions contain it; no plan and no log shows secret or settings."""

    url: str
    job: str
    secret_bytes: bytes = field(repr=False)
    settings_bytes: bytes = field(default=pickle.dumps({}), repr=False)  # of the store; bytes are hashable

    @property
    def secret(self) -> Secret:
        return Secret(self.secret_bytes)

    def store(self) -> Store:
        """Return the store, opened once per process."""
        return _open_store(self.url, self.settings_bytes)

    def log(self) -> ResultLog:
        """Return the result log, one per process because it caches what it has read."""
        return _open_log(self)

    @classmethod
    def from_options(cls, options: Mapping[str, str], known: tuple[str, ...], credentials: Credentials) -> "JobAccess":
        """Return the access that a source's options name; it takes `store`, `name` and the options in `known`."""
        if "secret" in options:
            raise InvalidSetting("secret", "***", "plans show options. Set ELASTIC_SECRET before Spark starts")
        names = {name.lower(): name for name in ("store", "name", *known)}
        for name in options:
            if name.lower() not in names:
                raise UnknownSetting(name, names.values())
        for name in ("store", "name"):
            if not options.get(name):
                raise InvalidSetting(name, None, "a source needs the store and the name of the job that it reads")
        found = credentials.access(options["store"], options["name"])
        return cls(found.url, options["name"], found.secret_bytes, pickle.dumps(found.settings))


def parse_positive(options: Mapping[str, str], name: str) -> int | None:
    """Return an option that is a whole number above 0, None if it is not set."""
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InvalidSetting(name, text, "it must be a whole number above 0")
    return int(text)


@lru_cache(_OPEN_STORES)
def _open_store(url: str, settings_bytes: bytes) -> Store:
    # The bytes come from `JobAccess.from_options` and are as trusted as the function that contains them.
    return storage.open(url, **pickle.loads(settings_bytes))  # noqa: S301


@lru_cache(_OPEN_STORES)
def _open_log(access: JobAccess) -> ResultLog:
    return ResultLog(access.store(), access.secret, access.job)
