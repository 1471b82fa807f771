"""Registration of the data sources in a Spark session."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from elastic.spark.sources.access import Credentials
from elastic.spark.sources.results_source import ResultsSource
from elastic.spark.sources.state_source import StateSource
from elastic.store_access import StoreAccess
from storage.codec import Secret

_jobs: dict[tuple[str, str], StoreAccess] = {}  # jobs that this process has run, by store and name
_store_settings: dict[str, Any] = {}  # of the last call of `register_sources` that had some
_changing = threading.Lock()
_registered: "WeakKeyDictionary[SparkSession, Credentials]" = WeakKeyDictionary()
_SPARK_LOGGER = "org.apache.spark.sql.execution.datasources.DataSourceManager"


def register_sources(
    spark: SparkSession, secret: Secret | None = None, store_settings: Mapping[str, Any] | None = None
) -> None:
    """Let this session read the formats `elastic` and `elastic-state`; a call that changes nothing does nothing.

    `elastic.run` registers the jobs of its own session. To read other jobs, pass their `secret` unless Spark's
    processes find it in the environment, and `store_settings` if their store needs some. Both are part of the
    registered class, which Spark keeps as bytes and never prints. The secret holds until the next call, the settings
    until a call passes others.
    """
    with _changing:
        if store_settings is not None:
            _store_settings.clear()
            _store_settings.update(store_settings)
        secret_bytes = None if secret is None else secret.reveal()
        credentials = Credentials(secret_bytes, dict(_store_settings), dict(_jobs))
        if _registered.get(spark) == credentials:
            return
        with _mute_replacement_warning(spark) if spark in _registered else nullcontext():
            for source in (ResultsSource, StateSource):
                spark.dataSource.register(bind_credentials(source, credentials))
        _registered[spark] = credentials


def register_job(spark: SparkSession, job: str, access: StoreAccess) -> None:
    """Let this session read a job with the secret and the store settings that the job has."""
    with _changing:
        _jobs[access.url, job] = access
    register_sources(spark, access.secret)


def bind_credentials(source: type[DataSource], credentials: Credentials) -> type[DataSource]:
    """Return a subclass with these credentials; no module contains it, so it is pickled with them."""
    if credentials == Credentials():
        return source
    return type(source.__name__, (source,), {"credentials": credentials, "__module__": source.__module__})


@contextmanager
def _mute_replacement_warning(spark: SparkSession) -> Iterator[None]:
    """Mute Spark's warning that a source is replaced: every further job of a session replaces it."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark cannot set the level of one logger
    log4j = jvm.org.apache.logging.log4j
    before = log4j.LogManager.getLogger(_SPARK_LOGGER).getLevel()
    log4j.core.config.Configurator.setLevel(_SPARK_LOGGER, log4j.Level.ERROR)
    try:
        yield
    finally:
        log4j.core.config.Configurator.setLevel(_SPARK_LOGGER, before)
