"""Makes Spark know the sources."""

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from elastic.runtime.sources.results_source import ResultsSource
from elastic.runtime.sources.state_source import StateSource
from storage.codec import Secret


def register(spark: SparkSession, secret: Secret | None = None) -> None:
    """Let this session read formats `elastic` and `elastic-state`; again is the same as once.

    A `secret` that the planning processes could not find themselves travels with the class that is registered, which
    Spark keeps as bytes and never prints; it holds for the session, until the next call.
    """
    for source in (ResultsSource, StateSource):
        spark.dataSource.register(source if secret is None else _with_secret(source, secret))


def _with_secret(source: type[DataSource], secret: Secret) -> type[DataSource]:
    """A class that is pickled whole, because no module has it."""
    return type(source.__name__, (source,), {"secret_bytes": secret.reveal(), "__module__": source.__module__})
