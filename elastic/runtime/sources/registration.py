"""Makes Spark know the sources."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from elastic.runtime.access import StoreAccess
from elastic.runtime.sources.access import Credentials
from elastic.runtime.sources.results_source import ResultsSource
from elastic.runtime.sources.state_source import StateSource
from storage.codec import Secret

_jobs: dict[tuple[str, str], StoreAccess] = {}  # that this process has run, by store and name
_store_settings: dict[str, Any] = {}  # of the last call of `register` that gave some
_changing = threading.Lock()
_registered: "WeakKeyDictionary[SparkSession, Credentials]" = WeakKeyDictionary()
_SPARK_LOGGER = "org.apache.spark.sql.execution.datasources.DataSourceManager"


def register(
    spark: SparkSession, secret: Secret | None = None, store_settings: Mapping[str, Any] | None = None
) -> None:
    """Let this session read formats `elastic` and `elastic-state`; again is the same as once.

    A `secret` that the planning processes could not find themselves, and the settings that a store is opened with,
    travel with the class that is registered, which Spark keeps as bytes and never prints. The secret holds until the
    next call, the settings until others are given. Jobs that this process runs are read with their own. Nothing is
    registered again that has not changed.
    """
    with _changing:
        if store_settings is not None:
            _store_settings.clear()
            _store_settings.update(store_settings)
        secret_bytes = None if secret is None else secret.reveal()
        credentials = Credentials(secret_bytes, dict(_store_settings), dict(_jobs))
        if _registered.get(spark) == credentials:
            return
        with _without_warning(spark) if spark in _registered else nullcontext():
            for source in (ResultsSource, StateSource):
                spark.dataSource.register(source_with(source, credentials))
        _registered[spark] = credentials


def register_job(spark: SparkSession, job: str, access: StoreAccess) -> None:
    """Let this session read a job as it was started: with its secret and the settings of its store."""
    with _changing:
        _jobs[access.url, job] = access
    register(spark, access.secret)


def source_with(source: type[DataSource], credentials: Credentials) -> type[DataSource]:
    """A class that is pickled whole, because no module has it."""
    if credentials == Credentials():
        return source
    return type(source.__name__, (source,), {"credentials": credentials, "__module__": source.__module__})


@contextmanager
def _without_warning(spark: SparkSession) -> Iterator[None]:
    """Spark warns that a source was replaced; here that is what a second job wants."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no way to set the level of one logger
    log4j = jvm.org.apache.logging.log4j
    before = log4j.LogManager.getLogger(_SPARK_LOGGER).getLevel()
    log4j.core.config.Configurator.setLevel(_SPARK_LOGGER, log4j.Level.ERROR)
    try:
        yield
    finally:
        log4j.core.config.Configurator.setLevel(_SPARK_LOGGER, before)
