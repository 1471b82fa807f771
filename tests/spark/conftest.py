"""The shared Spark for programs that bring their own."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def spark_of_programs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Let a program that starts and stops Spark find the shared one and leave it running.

    The start of a JVM takes longer than most programs. `make long` runs them in processes of their own.
    """
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)
    yield spark
    spark.sparkContext.setLogLevel("OFF")
