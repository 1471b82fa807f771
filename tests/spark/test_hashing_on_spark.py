"""The hash of a key is the same number in Python and in the JVM: otherwise rows would miss their state."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from elastic.routing.hashing import hash_keys, spark_hash_expression, to_tasks
from tests.elastic.routing.keys import KEYS, key_columns
from tests.spark.jobs import changed_conf

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
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session in another time zone, where timestamps without a zone stay without one."""
    zone, kind = "America/New_York", "TIMESTAMP_NTZ"
    with changed_conf(spark, spark_sql_session_timeZone=zone, spark_sql_timestampType=kind) as session:
        yield session


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return key_columns(ROWS, seed=4)


@pytest.fixture(scope="module")
def frame(new_york: SparkSession, table: pa.Table) -> DataFrame:
    return new_york.createDataFrame(table)


def test_every_key_of_every_type_hashes_alike_in_python_and_in_the_jvm(frame: DataFrame, table: pa.Table) -> None:
    keys = [(name,) for name in SINGLE] + SEVERAL
    there = frame.selectExpr(*(f"{spark_hash_expression(key)} AS h{number}" for number, key in enumerate(keys)))
    hashes = there.toArrow()
    for number, key in enumerate(keys):
        here = hash_keys([table[name] for name in key])
        wrong = np.flatnonzero(here != hashes[f"h{number}"].to_numpy())
        assert wrong.size == 0, f"{key}: {[table[name][int(wrong[0])] for name in key]} and {wrong.size - 1} more"


def test_every_key_finds_the_same_task_in_python_and_in_the_jvm(frame: DataFrame, table: pa.Table) -> None:
    for tasks in (1, 7, 64):
        there = frame.selectExpr(f"pmod({spark_hash_expression(['int64'])}, {tasks}) AS task").toArrow()
        assert (to_tasks(hash_keys([table["int64"]]), tasks) == there["task"].to_numpy()).all()


def test_a_column_with_an_odd_name_is_quoted(spark: SparkSession) -> None:
    odd = ["a.b", "back`tick", "two words", "select"]
    row = spark.createDataFrame(pa.table({name: [1] for name in odd})).selectExpr(spark_hash_expression(odd)).first()
    assert row is not None
    assert row[0] == hash_keys([pa.array([1])] * 4)[0]
