"""The benchmark of Nexmark, with a few small batches: both engines give the same answers, also while the job scales."""

import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.__main__ import DEFAULT_SETTINGS, QUICK, measure
from benchmarks.nexmark.spark_way import MISSING, SPARK_QUERIES
from examples.nexmark.queries import QUERIES

pytestmark = pytest.mark.spark

FEW = (5, 20)  # windows over windows, and a join; the others with `make long`


def test_every_query_is_either_written_for_spark_or_has_a_reason_why_not() -> None:
    assert SPARK_QUERIES.keys() | MISSING.keys() == QUERIES.keys()
    assert not SPARK_QUERIES.keys() & MISSING.keys()


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[] if number in FEW else pytest.mark.long) for number in QUERIES]
)
def test_answers_are_those_of_spark_and_the_same_while_the_job_scales(spark: SparkSession, number: int) -> None:
    names = ("spark.sql.streaming.stateStore.providerClass", "spark.sql.shuffle.partitions")
    before = {name: str(spark.conf.get(name)) for name in names}
    try:
        line = measure(spark, number, QUICK, DEFAULT_SETTINGS)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert line.answers == ("-" if number in MISSING else "equal")
    assert line.scaled_answers == "equal"
    assert "4 nodes in batches" in line.note
    assert "3 nodes in batches" in line.note
