"""The hash of a key is the same number in Python and in the JVM: otherwise rows would miss their state."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from elastic.routing.hashing import key_hash, spark_hash_expression, task_of
from tests.elastic.routing.keys import KEYS, key_columns

pytestmark = pytest.mark.spark

ROWS = 100_000
SINGLE = [*KEYS, "struct", "nested struct"]
SEVERAL = [
    ("int64", "string"),
    ("string", "double", "int8"),
    ("bool", "struct", "date"),
    ("decimal(38, 10)", "binary", "nested struct", "timestamp"),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .appName("hashing")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.timestampType", "TIMESTAMP_NTZ")  # else a timestamp without a zone would get one
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return key_columns(ROWS, seed=4)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)


def test_every_key_of_every_type_hashes_alike_in_python_and_in_the_jvm(frame: DataFrame, table: pa.Table) -> None:
    keys = [(name,) for name in SINGLE] + SEVERAL
    there = frame.selectExpr(*(f"{spark_hash_expression(key)} AS h{number}" for number, key in enumerate(keys)))
    hashes = there.toArrow()
    for number, key in enumerate(keys):
        here = key_hash([table[name] for name in key])
        wrong = np.flatnonzero(here != hashes[f"h{number}"].to_numpy())
        assert wrong.size == 0, f"{key}: {[table[name][int(wrong[0])] for name in key]} and {wrong.size - 1} more"


def test_every_key_finds_the_same_task_in_python_and_in_the_jvm(frame: DataFrame, table: pa.Table) -> None:
    for tasks in (1, 7, 64):
        there = frame.selectExpr(f"pmod({spark_hash_expression(['int64'])}, {tasks}) AS task").toArrow()
        assert (task_of(key_hash([table["int64"]]), tasks) == there["task"].to_numpy()).all()


def test_a_column_with_an_odd_name_is_quoted(spark: SparkSession) -> None:
    odd = ["a.b", "back`tick", "two words", "select"]
    row = spark.createDataFrame(pa.table({name: [1] for name in odd})).selectExpr(spark_hash_expression(odd)).first()
    assert row is not None
    assert row[0] == key_hash([pa.array([1])] * 4)[0]
