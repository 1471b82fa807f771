"""What the programs here share: a quiet Spark in this process, and a folder for its state."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import elastic


@contextmanager
def quiet_spark(nodes: int, log_level: str = "ERROR") -> Iterator[SparkSession]:
    """With room for the nodes, and for some more to scale out to."""
    spark = elastic.local_session(nodes, spark_log_level=log_level)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def store_in(folder: Path | None) -> Iterator[str]:
    """The URL of a store in the folder, or in one that is gone afterwards."""
    if folder is not None:
        yield folder.absolute().as_uri()
        return
    with tempfile.TemporaryDirectory(prefix="frequent-patterns-", ignore_cleanup_errors=True) as temporary:
        yield Path(temporary).as_uri()
