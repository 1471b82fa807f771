"""Makes Spark know the sources."""

import threading
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from elastic.runtime.sources.results_source import ResultsSource
from elastic.runtime.sources.state_source import StateSource
from storage.codec import Secret

_registered: "WeakKeyDictionary[SparkSession, bytes | None]" = WeakKeyDictionary()
_lock = threading.Lock()


def register(spark: SparkSession, secret: Secret | None = None) -> None:
    """Let this session read formats `elastic` and `elastic-state`; again is the same as once.

    Spark logs a warning when a source is registered again, so a second job with the same secret registers nothing.
    A `secret` that the planning processes could not find themselves travels with the class that is registered, which
    Spark keeps as bytes and never prints; it holds for the session, until the next call.
    """
    wanted = None if secret is None else secret.reveal()
    with _lock:
        if spark in _registered and _registered[spark] == wanted:
            return
        for source in (ResultsSource, StateSource):
            spark.dataSource.register(source if secret is None else _with_secret(source, secret))
        _registered[spark] = wanted


def _with_secret(source: type[DataSource], secret: Secret) -> type[DataSource]:
    """A class that is pickled whole, because no module has it."""
    return type(source.__name__, (source,), {"secret_bytes": secret.reveal(), "__module__": source.__module__})
