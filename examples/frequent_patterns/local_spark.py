"""A local Spark session with few log messages, and a folder for state."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import elastic


@contextmanager
def quiet_spark(nodes: int, log_level: str = "ERROR") -> Iterator[SparkSession]:
    """Start a local session with task slots for the nodes, and for some more to scale out to."""
    spark = elastic.local_session(nodes, spark_log_level=log_level)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def open_store(folder: Path | None) -> Iterator[str]:
    """Return the URL of a store in the folder, or in a temporary one."""
    if folder is not None:
        yield folder.absolute().as_uri()
        return
    with tempfile.TemporaryDirectory(prefix="frequent-patterns-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary).as_uri()
