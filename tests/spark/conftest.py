"""A Spark for tests that run jobs: room for four nodes, and quiet. Modules that need another one have their own."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import elastic


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = elastic.local_session(4)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
